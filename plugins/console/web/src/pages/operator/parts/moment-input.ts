/** What a field for a moment gives, as the API takes it. Pure. */

/** `2026-12-01 08:30:00` in the viewer's zone as ISO 8601; null: empty. */
export function toIso(local: string | null): string | null {
  if (local === null || local === '') return null;
  return new Date(local.replace(' ', 'T')).toISOString();
}
