/** Masks keys, organisations and addresses in upstreams' messages for clients. Pure. */

/** Texts beyond this are not searched, and therefore not handed on. Vendors' errors are a hundredth of it. */
export const maxScrubbedBytes = 64 * 1024;

/**
 * Keys. Each pattern stops at quotes and backslashes, so that JSON stays JSON, and each repetition that can fail behind
 * itself is bounded: clients choose much of what vendors quote.
 */
export const keyPatterns: readonly RegExp[] = [
  // Short prefixes also when the vendor has shortened them itself (`sk-ab***yz`), any other when it is long and mixed.
  /\b(?:sk|pk|rk|gsk)[-_][A-Za-z0-9*_-]{6,}/g,
  /\b(?!(?:req|msg|resp|gen|call|toolu|file|run)[-_])[a-z]{2,6}[-_](?=[\w-]{0,99}\d)(?=[\w-]{0,99}[A-Z])[\w-]{24,}/g,
  /\bAIza[A-Za-z0-9*_-]{8,}/g,
  // Access tokens of Google, and signed ones of others.
  /\bya29\.[\w*.-]{6,2048}/g,
  /\beyJ[\w-]{8,4096}(?:\.[\w-]{2,4096}){1,2}/g,
  // https://api.slack.com/authentication/token-types
  /\bxapp-\d-[A-Za-z0-9-]{8,512}|\bxox[a-z](?:\.xox[a-z])?-[A-Za-z0-9.-]{8,512}/g,
  /\bBearer\s+[A-Za-z0-9*._~+/=-]{8,}/gi,
];

/** Patterns that are masked: keys, organisations, projects, addresses; bounded in the same way. */
const secrets: readonly RegExp[] = [
  ...keyPatterns,
  // Organisations, of any length unless it is a word of English, and projects.
  /\borg-(?!(?:level|wide|specific|scoped|owned|managed|based|id|ids|name)\b)\w[\w-]*/g,
  /\borg_(?!(?:id|ids|name|uuid|type|not|level|disabled|limit)(?:_|\b))\w+/g,
  /(?<=\borgani[sz]ation(?:['’]s)?(?: ID| id)?[ :(]{1,3})(?=[a-z]{0,40}\d|[\da-f]{8}-)[\w-]{2,100}/g,
  /\b(?:proj|acct|team|user)[-_][A-Za-z0-9]{8,}/g,
  /\b(?:projects\/|project_number:|organizations\/)[\w-]+/g,
  // Names of resources with the number of an account.
  /\barn:[\w-]{1,20}:[\w:/.*+=,@-]{1,512}/g,
  // Addresses, but for the type names of google.rpc, which look like one: URLs (also with escaped slashes), hosts of common domains, IP addresses with an optional port.
  /\b(?:https?|wss?):(?:\\?\/){2}(?:[^\s"'<>\\)\]}]|\\\/)+/gi,
  /\b(?!type\.googleapis\.com\/)(?<!type\.)(?:[a-z0-9][a-z0-9-]{0,62}\.){1,8}(?:com|net|org|io|ai|dev|cloud|cn|app|internal|local|localhost|svc)\b(?::\d+)?/gi,
  /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b/g,
  /\[?\b[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){4,7}\]?(?::\d{1,5})?/gi,
];

const mask = '***';
/** A shorter key is an example's, and may be a word that stands in any text. */
const shortestKey = 8;

/** `key`: the key that this upstream was called with; no pattern may match its form. */
export function scrubText(text: string, key = ''): string {
  let clean = key.length < shortestKey ? text : withoutKey(text, key);
  for (const pattern of secrets) clean = clean.replace(pattern, mask);
  return clean;
}

/** As it is, and as JSON writes it. */
function withoutKey(text: string, key: string): string {
  return text.replaceAll(key, mask).replaceAll(JSON.stringify(key).slice(1, -1), mask);
}

/** The very same bytes when there was nothing to mask. */
export function scrubBytes(bytes: Uint8Array, key = ''): Uint8Array {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  const clean = scrubText(text, key);
  return clean === text ? bytes : Buffer.from(clean);
}
