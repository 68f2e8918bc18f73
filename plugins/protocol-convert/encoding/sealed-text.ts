/** Opaque texts that the gateway recognises: those that it sealed, and the values for a lost signature. Pure. */

/** Every sealed text begins with it, whatever its purpose. */
export const sealPrefix = 'gw1.';

/** The characters that begin the base64 of every sealed text, for members that clients read as bytes. */
export const sealPrefixBase64 = Buffer.from(sealPrefix)
  .toString('base64')
  .slice(0, Math.floor((sealPrefix.length * 8) / 6));

/** Value for a call without its signature. https://ai.google.dev/gemini-api/docs/thought-signatures */
export const lostSignature = 'skip_thought_signature_validator';
const lostSignatures = new Set([lostSignature, 'context_engineering_is_the_way_to_go']);
const longestLost = 64;

/** Whether a client says that it has no signature; some clients encode the value in base64. */
export function isLostSignature(text: string): boolean {
  if (text.length > longestLost) return false;
  return lostSignatures.has(text) || lostSignatures.has(Buffer.from(text, 'base64').toString('latin1'));
}

/** Whether a value is sealed text, of this gateway or another: it must not be sent to a vendor. */
export function isSealed(value: unknown, prefix = sealPrefix): value is string {
  return typeof value === 'string' && value.startsWith(prefix);
}
