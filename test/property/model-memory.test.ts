import { memorySubject } from '../contract/subjects/memory.ts'
import { modelFile } from './model-file.ts'

modelFile(memorySubject, { histories: 30, moves: 40 })
