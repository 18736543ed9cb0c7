import { describe } from 'vitest'
import { testPlanted } from '../../../support/planting.ts'
import { bugs } from './bugs.ts'

describe('the in-process driver', () => {
  testPlanted({
    bugs,
    load: () => import('../../../../src/drivers/memory/index.ts'),
    trial: (_module, load) => ({ load }),
  })
})
