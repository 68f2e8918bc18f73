/** Rendezvous hashing: every process gives a session to the same of several places, without asking another. Pure. */

/** 32 bits of a text; FNV-1a, then mixed so that similar texts differ in all bits. */
export function seedOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return mixed(hash);
}

/**
 * How much a session belongs to a place, in (0, 1): who has the highest score gets it. When a place goes, its sessions alone
 * move, evenly to the others (Thaler and Ravishankar 1998).
 */
export function belonging(session: number, place: number): number {
  return (mixed(session ^ Math.imul(place, 0x9e3779b1)) + 0.5) / 2 ** 32;
}

/** The same for places with shares: each gets sessions by its weight. Higher is nearer; -Infinity without a weight. */
export function weightedBelonging(session: number, place: number, weight: number): number {
  return Math.log(belonging(session, place)) / weight;
}

/** The finalizer of MurmurHash3: each bit of the input changes half of the output's. */
function mixed(bits: number): number {
  let hash = bits;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
