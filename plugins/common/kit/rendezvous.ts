/** Rendezvous hashing: every process assigns a session to the same of several slots without coordination. Pure. */

/** 32 bits of a text; FNV-1a, then mixed so that similar texts differ in all bits. */
export function seedOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return mixed(hash);
}

/**
 * The affinity of a session to a slot, in (0, 1): the highest score wins. When a slot is removed, only its sessions move,
 * evenly to the others (Thaler and Ravishankar 1998).
 */
export function affinity(session: number, slot: number): number {
  return (mixed(session ^ Math.imul(slot, 0x9e3779b1)) + 0.5) / 2 ** 32;
}

/** The same for weighted slots: each gets sessions by its weight. The highest score wins; -Infinity without a weight. */
export function weightedAffinity(session: number, slot: number, weight: number): number {
  return Math.log(affinity(session, slot)) / weight;
}

/** The finalizer of MurmurHash3: each bit of the input changes half of the output's. */
function mixed(bits: number): number {
  let hash = bits;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
