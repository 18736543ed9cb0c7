/**
 * Names that stores, protocols and query languages have been known to stumble over. All are stored forms: well-formed,
 * without NUL, 1 to 255 UTF-8 bytes. Names that differ in one small thing stand beside each other.
 */
export const hostileNames: readonly string[] = [
  'plain',
  'Plain',
  'PLAIN',
  'plain ',
  ' plain',
  'plain\t',
  'plain\n',
  '\r\n',
  ' ',
  '  ',
  "o'clock",
  'say "when"',
  'back`tick',
  "'; drop table leases; --",
  "' or '1'='1",
  '$1',
  '$$',
  ':name',
  '?',
  '??',
  '%',
  '%s',
  '_',
  '100%_sure',
  '*',
  'a*b',
  '[abc]',
  '[^a]',
  '\\',
  '\\\\',
  '\\x00',
  'back\\slash\\',
  '{tag}',
  '{}',
  '}{',
  'a:b',
  'a::b',
  ':',
  'a/b/../c',
  '..',
  '/',
  ',',
  'null',
  'undefined',
  'true',
  '0',
  '-1',
  '1e3',
  'NaN',
  '__proto__',
  'constructor',
  'toString',
  'KEYS[1]',
  'return redis.call("FLUSHALL")',
  ']] .. os.exit() .. [[',
  '{"json":true}',
  '[1,2]',
  '\u0001',
  '\u007f',
  '\u0085',
  '\u2028',
  '\uFEFF',
  'e\u0301',
  '\u00e9',
  'ß',
  'ss',
  'SS',
  'ı',
  'i',
  'İ',
  'straße',
  'ключ',
  'مفتاح',
  '鍵',
  '😀',
  '👩‍👩‍👧',
  '\u{10FFFF}',
  '\uFFFD',
  '\uFFFF',
  '😀'.repeat(63),
  'x'.repeat(255),
  `${'x'.repeat(254)}y`,
  incompressible(255),
  'z',
  'zz',
]

/** Text of so many bytes in which no compressor finds anything, one to four bytes a character. */
function incompressible(bytes: number): string {
  let text = ''
  let left = bytes
  for (let state = 12_345; left > 0;) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    const point = [
      0x21 + (state % 90),
      0x400 + (state % 0x200),
      0x4e00 + (state % 0x5000),
      0x1_f300 + (state % 0x200),
    ]
    const char = String.fromCodePoint(point[(state >>> 16) % 4] as number)
    const size = Buffer.byteLength(char)
    if (size > left) {
      text += '!'
      left -= 1
    } else {
      text += char
      left -= size
    }
  }
  return text
}
