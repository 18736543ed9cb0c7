// How often each slot runs with the schedulers around us, in two processes of which one is 300 ms late: with what each
// offers itself, and guarded. Exit code 0 only if nothing that is guarded ran twice.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startRedis } from '../../scripts/servers/redis.mjs'
import { runsPerSlot } from '../integrations/second-by-second.ts'
import type { Way } from './second-by-second.ts'

const usage = `npm run schedulers -- [--slots <n>] [--late <ms>]

  --slots  how many slots to look at, one per second; default 60
  --late   how late the timers of the second process ring, in ms; default 300`

const ways: readonly Way[] = [
  'node-cron, alone',
  'node-cron, a lock per fire',
  'node-cron',
  'node-cron, coordinated',
  'cron',
  'croner',
  'node-schedule',
  'an interval',
]
const unguarded: ReadonlySet<Way> = new Set<Way>(['node-cron, alone', 'node-cron, a lock per fire'])

const { values } = parseArgs({
  options: {
    slots: { type: 'string', default: '60' },
    late: { type: 'string', default: '300' },
    help: { type: 'boolean' },
  },
})
const [slots, lateMs] = [Number(values.slots), Number(values.late)]
if (values.help === true || !(slots >= 1) || !(lateMs >= 0)) {
  console.log(usage)
  process.exit(values.help === true ? 0 : 2)
}

const program = fileURLToPath(new URL('second-by-second.js', import.meta.url))
const redis = await startRedis()
try {
  console.log(`${slots} slots, one per second; a job of 5 ms; two processes, one ${lateMs} ms late; Redis\n`)
  const all = await Promise.all(
    ways.map((way, index) =>
      runsPerSlot({
        start: (args) => fork(program, args),
        way,
        url: redis.url,
        namespace: `way-${index}`,
        lateMs: [0, lateMs],
        slots,
      }),
    ),
  )
  for (const [index, runs] of all.entries()) {
    const way = ways[index] as Way
    const counts = [0, 1, 2].map((times) => runs.filter((ran) => ran === times).length)
    const isBad = !unguarded.has(way) && (counts[2] !== 0 || counts[1] === 0)
    if (isBad) process.exitCode = 1
    const name = `${unguarded.has(way) ? way : `${way}, guarded`}${isBad ? '  WRONG' : ''}`
    console.log(`${name.padEnd(36)}never ${counts[0]}   once ${counts[1]}   twice ${counts[2]}`)
  }
} finally {
  await redis.stop()
}
