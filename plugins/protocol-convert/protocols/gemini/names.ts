/**
 * Converts member names between the official lowerCamelCase and the specification's snake_case; user data is unchanged. Pure.
 */

/** Members with content from the user or the model: schemas, arguments, results, labels. */
const opaque = new Set([
  'args',
  'response',
  'parameters',
  'parametersJsonSchema',
  'responseJsonSchema',
  'responseSchema',
  'schema',
  'labels',
  'partMetadata',
  'customMetadata',
  'metadata',
]);

export function toCamel(name: string): string {
  return name.includes('_') ? name.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()) : name;
}

export function toSnake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The value with every member renamed. Of an opaque member only the name changes, not its content. */
export function rename(value: unknown, how: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((element) => rename(element, how));
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [
    name.startsWith('@') ? name : how(name),
    opaque.has(toCamel(name)) ? member : rename(member, how),
  ]);
  return Object.fromEntries(members);
}
