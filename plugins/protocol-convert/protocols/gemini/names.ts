/** Member names between the official lowerCamelCase and the specification's snake_case; what users wrote stays. Pure. */

/** Members whose content is the user's or the model's own: schemas, arguments, results, labels. */
const opaque = new Set([
  'args',
  'response',
  'parameters',
  'parametersJsonSchema',
  'responseJsonSchema',
  'responseSchema',
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

/** The value with every member renamed, down to opaque ones, whose own name changes but nothing inside. */
export function rename(value: unknown, how: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((element) => rename(element, how));
  if (typeof value !== 'object' || value === null) return value;
  const renamed: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    renamed[name.startsWith('@') ? name : how(name)] = opaque.has(toCamel(name)) ? member : rename(member, how);
  }
  return renamed;
}
