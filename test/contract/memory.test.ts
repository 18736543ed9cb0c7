import { contractFile } from './contract-file.ts'
import { memorySubject } from './subjects/memory.ts'

contractFile(memorySubject)
