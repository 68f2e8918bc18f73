/** Times of arrival in request ids, which are UUIDs of version 7: ranges of time are ranges of the key. Pure. */

const lastMs = 2 ** 48 - 1;

/** Below the id of every request that arrived at or after `at` (wall-clock milliseconds), and above all others. */
export function firstIdAt(at: number): string {
  const milliseconds = Math.min(Math.max(Math.ceil(at), 0), lastMs);
  const digits = milliseconds.toString(16).padStart(12, '0');
  return `${digits.slice(0, 8)}-${digits.slice(8)}-0000-0000-000000000000`;
}
