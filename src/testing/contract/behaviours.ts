import type { ContractBehaviour } from '../contract-subject.ts'
import { batching } from './batching.ts'
import { ordering } from './ordering.ts'
import { cancelling } from './cancelling.ts'
import { claiming } from './claiming.ts'
import { completing } from './completing.ts'
import { controlling } from './controlling.ts'
import { crashing } from './crashing.ts'
import { deciding } from './deciding.ts'
import { failing } from './failing.ts'
import { fencing } from './fencing.ts'
import { granting } from './granting.ts'
import { lockModel } from './lock-model.ts'
import { naming } from './naming.ts'
import { opening } from './opening.ts'
import { peeking } from './peeking.ts'
import { purging } from './purging.ts'
import { pushing } from './pushing.ts'
import { racing } from './racing.ts'
import { refreshing } from './refreshing.ts'
import { registering } from './registering.ts'
import { releasing } from './releasing.ts'
import { revoking } from './revoking.ts'
import { runLog } from './run-log.ts'
import { running } from './running.ts'
import { scanning } from './scanning.ts'
import { storeClock } from './store-clock.ts'
import { taskModel } from './task-model.ts'
import { taskRacing } from './task-racing.ts'
import { waiting } from './waiting.ts'

/** Everything that every driver is measured by, from what is simplest to what builds on it. */
export function allBehaviours(seeds: readonly number[]): readonly ContractBehaviour[] {
  return [
    ...opening,
    ...granting,
    ...fencing,
    ...refreshing,
    ...releasing,
    ...waiting,
    ...revoking,
    ...peeking,
    ...scanning,
    ...naming,
    ...batching,
    ...racing,
    ...purging,
    ...lockModel(seeds),
    ...registering,
    ...claiming,
    ...deciding,
    ...crashing,
    ...cancelling,
    ...ordering,
    ...running,
    ...completing,
    ...controlling,
    ...runLog,
    ...taskRacing,
    ...taskModel(seeds),
    ...storeClock,
    ...pushing,
    ...failing,
  ]
}
