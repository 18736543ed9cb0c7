// What is checked of the model, and what each check has to come to. model/README.md says what the names mean.

/**
 * @typedef {object} ModelCheck
 * @property {string} name
 * @property {'lease' | 'slots'} model the file in model/
 * @property {string[]} defines what it is switched to
 * @property {string} [formula] the LTL formula that is checked, instead of the assertions
 * @property {string} expected `holds`, or `breaks: ` and the property
 */

/** Faults are left out that a flaw does not need: the shorter the story, the clearer. */
const noFaults = ['LOST=0', 'STRAYS=0', 'CRASHES=0']
const written = ['WRITES', 'GRANTS=4', 'TTL=2']

/**
 * @param {ModelCheck['model']} model
 * @param {string} name
 * @param {string[]} defines
 * @param {string} [formula]
 * @returns {ModelCheck}
 */
function sound(model, name, defines, formula) {
  const about = { name: `${model}: ${name}`, model, defines, expected: 'holds' }
  return formula === undefined ? about : { ...about, formula }
}

/**
 * @param {ModelCheck['model']} model
 * @param {string} flaw
 * @param {string} broken
 * @param {string[]} [defines]
 * @returns {ModelCheck}
 */
function flawed(model, flaw, broken, defines = noFaults) {
  const about = { name: `${model}: ${flaw}`, model, expected: `breaks: ${broken}` }
  return { ...about, defines: [...defines, flaw] }
}

/**
 * @param {ModelCheck['model']} model
 * @param {string} flaw
 * @param {string} formula
 * @param {string[]} defines
 * @returns {ModelCheck}
 */
function stuck(model, flaw, formula, defines) {
  return { ...flawed(model, flaw, formula, [...defines, 'LIVENESS', 'TTL=2', 'LOST=0', 'STRAYS=0']), formula }
}

const oneBelief = 'no two nodes believe in one key'
const isWritten = "a believing holder's write is accepted"
const decidedOnce = 'a slot is decided once'

/** The long ones first: two run at a time. @type {readonly ModelCheck[]} */
export const modelChecks = [
  sound('slots', 'retried, states not merged', ['TTL=2', 'RETRY', ...noFaults]),
  sound(
    'slots',
    'every slot ends, retried',
    ['LIVENESS', 'REDUCED', 'TTL=2', 'LOST=0', 'STRAYS=0', 'RETRY'],
    'every_slot_ends',
  ),
  sound('slots', 'retried', ['REDUCED', 'TTL=2', 'LOST=0', 'RETRY']),
  sound('slots', 'retried, queued', ['REDUCED', 'TTL=2', 'LOST=0', 'RETRY', 'QUEUE']),
  sound('slots', 'skipped', ['REDUCED', 'TTL=2']),
  sound('slots', 'queued', ['REDUCED', 'TTL=2', 'LOST=0', 'QUEUE']),
  sound(
    'slots',
    'every slot ends, skipped',
    ['LIVENESS', 'REDUCED', 'TTL=2', 'LOST=0', 'STRAYS=0'],
    'every_slot_ends',
  ),
  sound(
    'slots',
    'every slot ends, queued',
    ['LIVENESS', 'REDUCED', 'TTL=2', 'LOST=0', 'STRAYS=0', 'RETRY', 'QUEUE'],
    'every_slot_ends',
  ),
  sound('lease', 'belief', ['REDUCED']),
  sound('lease', 'fences', ['REDUCED', 'TTL=2', 'LOST=0', 'WRITES']),
  sound('lease', 'trusted again and again', ['LIVENESS', 'TTL=2', 'LOST=0'], 'trusted_again_and_again'),
  sound('lease', 'granted when free', ['TTL=2', 'LOST=0'], 'granted_when_free'),
  sound('lease', 'free after a crash', ['TTL=2', 'LOST=0'], 'free_after_a_crash'),
  sound('lease', 'belief, states not merged', ['STRAYS=0']),

  flawed('lease', 'DEADLINE_PLUS_TTL', oneBelief, ['LOST=1', 'STRAYS=0', 'CRASHES=0']),
  flawed('lease', 'DEADLINE_FROM_ANSWER', oneBelief),
  flawed('lease', 'NO_MARGIN', oneBelief),
  flawed('lease', 'REFRESH_UPSERT', oneBelief),
  flawed('lease', 'EXPIRY_MOVES_BACK', oneBelief, ['LOST=0', 'STRAYS=1', 'CRASHES=0']),
  flawed('lease', 'RELEASE_WITHOUT_TOKEN', oneBelief),
  flawed('lease', 'TAKEOVER_KEEPS_FENCE', 'a fence is greater than every earlier one', [
    ...noFaults,
    ...written,
  ]),
  flawed('lease', 'FENCE_AFTER_GRANT', isWritten, [...noFaults, ...written]),
  flawed('lease', 'RESOURCE_WITHOUT_FENCE', 'no write is accepted after one with a higher fence', [
    ...noFaults,
    ...written,
  ]),
  stuck('lease', 'EXPIRY_AFTER_GRANT', 'trusted_again_and_again', []),
  flawed('slots', 'CLAIM_WITHOUT_AFTER', decidedOnce, [...noFaults, 'TTL=2']),
  flawed('slots', 'CLAIM_BEFORE_DUE', 'no slot is decided before it is due', [...noFaults, 'TTL=2']),
  flawed('slots', 'MARK_REMOVED_ON_COMPLETE', decidedOnce, [...noFaults, 'TTL=2']),
  flawed('slots', 'COMPLETE_CHECKS_EXPIRY', 'a run that reported its end is not run again', [
    ...noFaults,
    'TTL=2',
    'RETRY',
  ]),
  flawed('slots', 'TAKEOVER_BY_OWN_TOKEN', 'a token is granted one run', [
    ...noFaults,
    'TTL=2',
    'RETRY',
    'STRAYS=1',
  ]),
  flawed('slots', 'COMPLETE_WITHOUT_FENCE', 'a slot is not run too often', [...noFaults, 'TTL=2', 'RETRY']),
  flawed('slots', 'CLAIM_DROPS_RETRY', 'a run is lost for good only after the last attempt', [
    ...noFaults,
    'TTL=2',
    'RETRY',
  ]),
  stuck('slots', 'CLAIM_IGNORES_LAPSE', 'every_slot_ends', ['QUEUE']),
]
