import { describe } from 'vitest'
import { testPlanted } from '../../../support/planting.ts'
import { bugs } from './bugs.ts'

describe('the SQLite driver', () => {
  testPlanted({
    bugs,
    load: () => import('../../../../src/drivers/sqlite/index.ts'),
    trial: (module) => module,
  })
})
