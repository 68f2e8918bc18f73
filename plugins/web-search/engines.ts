/** Presets of search engines, from config/search-engines.yaml: what a section says of its engine's API stands over them. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { isObject, type JsonObject } from '../../core/json/json.ts';
import { didYouMean } from '../../core/tools/near-names.ts';

const file = new URL('../../config/search-engines.yaml', import.meta.url);
let known: ReadonlyMap<string, JsonObject> | undefined;

/** Read when a preset is first used: most gateways name none. */
export function engines(): ReadonlyMap<string, JsonObject> {
  known ??= new Map(Object.entries(parse(readFileSync(file, 'utf8')) as Record<string, JsonObject>));
  return known;
}

export const unknownEngine = (name: string): string =>
  `there is no search engine "${name}" in config/search-engines.yaml${didYouMean(name, engines().keys())}`;

/** The section with its engine's API under what it writes of it; unchanged if it names no engine that is known. */
export function withEngine(section: unknown): unknown {
  const engine = isObject(section) ? section['engine'] : undefined;
  const preset = typeof engine === 'string' ? engines().get(engine)?.['api'] : undefined;
  if (!isObject(section) || !isObject(preset)) return section;
  return { ...section, api: over(preset, section['api']) };
}

/** Mappings merge, all else is replaced. */
function over(preset: JsonObject, own: unknown): unknown {
  if (own === undefined) return preset;
  if (!isObject(own)) return own;
  const merged: Record<string, unknown> = { ...preset };
  for (const [name, value] of Object.entries(own)) {
    const before = merged[name];
    merged[name] = isObject(before) && isObject(value) ? over(before, value) : value;
  }
  return merged;
}
