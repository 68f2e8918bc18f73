/** Estimates of tokens where no vendor has counted. Pure. */

/** Biased upwards, for holds: as prompts of chat are held. */
const heldBytesPerToken = 2;
/** An image of any size: above the highest bound that vendors publish. */
export const heldImageTokens = 5_000;
/** Closer to what texts measure, for charges of answers without a usage; those are marked as estimated. */
const chargedBytesPerToken = 3;

export function heldTokens(bytes: number): number {
  return Math.ceil(bytes / heldBytesPerToken);
}

export function chargedTokens(bytes: number): number {
  return Math.ceil(bytes / chargedBytesPerToken);
}
