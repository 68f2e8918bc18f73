/** Takes out of an upstream's words what a client must not learn: keys, organisations, addresses. Pure. */

/** What is masked. Each stops at quotes and backslashes, so that JSON stays JSON. */
const secrets: readonly RegExp[] = [
  // Keys by their common prefixes, also shortened by the vendor itself (`sk-ab***yz`).
  /\b(?:sk|pk|rk|gsk|xai|csk|fw|pplx|r8|hf|nvapi|tgp)[-_][A-Za-z0-9*_-]{6,}/g,
  /\bAIza[A-Za-z0-9*_-]{8,}/g,
  /\bBearer\s+[A-Za-z0-9*._~+/=-]{8,}/gi,
  // Organisations and projects.
  /\b(?:org|proj|acct|team|user)[-_][A-Za-z0-9]{8,}/g,
  // Addresses: URLs (also with escaped slashes), hosts of common domains, IP addresses with an optional port.
  /\b(?:https?|wss?):(?:\\?\/){2}(?:[^\s"'<>\\)\]}]|\\\/)+/gi,
  /\b(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:com|net|org|io|ai|dev|cloud|cn|app|internal|local|localhost|svc)\b(?::\d+)?/gi,
  /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b/g,
  /\[?\b[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){4,7}\]?(?::\d{1,5})?/gi,
];

const mask = '***';

export function scrubText(text: string): string {
  let clean = text;
  for (const pattern of secrets) clean = clean.replace(pattern, mask);
  return clean;
}

/** The very same bytes when there was nothing to mask. */
export function scrubBytes(bytes: Uint8Array): Uint8Array {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  const clean = scrubText(text);
  return clean === text ? bytes : Buffer.from(clean);
}
