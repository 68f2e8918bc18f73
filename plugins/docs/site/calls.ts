/** Calls by curl that this gateway answers, with a model that it sells. Pure. */
import { examples } from '../../common/kit/pages/call-examples.ts';
import type { Facts, ModelFacts } from './facts.ts';
import { addressOf, quoted } from './markdown.ts';

/** The address by which a model of each kind is called first. */
const firstPaths: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
  chat: '/v1/chat/completions',
  image: '/v1/images/generations',
  video: '/v1/videos',
  embedding: '/v1/embeddings',
  rerank: '/v1/rerank',
  speech: '/v1/audio/speech',
  moderation: '/v1/moderations',
});

/** undefined: the gateway has no such address, or a call needs more than words. */
export function callOf(model: ModelFacts, facts: Facts): string | undefined {
  const path = firstPaths[model.kind];
  return path === undefined ? undefined : curlOf(path, model.id, facts);
}

/** `path` as endpoints describe themselves, perhaps with `{model}` in it. */
export function curlOf(
  path: string,
  model: string,
  { address, endpoints, carriers, models }: Facts,
): string | undefined {
  const isNamed = path.includes('{model}');
  const example = examples[isNamed ? path.slice(path.indexOf('}') + 1) : path];
  const isOffered = endpoints.some(
    (endpoint) =>
      endpoint.method === 'POST' &&
      (endpoint.path === path || endpoint.describes?.some((described) => described.path === path) === true),
  );
  // Without a kind it needs an id of something that was made before.
  if (example?.kind === undefined || !isOffered) return undefined;
  const sold = models.find(({ id }) => id === model);
  const needsImage = sold?.limits?.needsImage === true;
  if (sold?.kind !== example.kind || (needsImage && example.withImage === undefined)) return undefined;
  const shown = needsImage ? { ...example.body, ...example.withImage } : example.body;
  const text = JSON.stringify(shown);
  const isWithin = isNamed || text.includes('MODEL');
  const body = isWithin ? text.replaceAll('MODEL', model) : JSON.stringify({ model, ...shown });
  const url = `${address}${path.replace('{model}', addressOf(model))}`;
  return [
    `curl ${/^[\w:/.@%-]+$/.test(url) ? url : quoted(url)} \\`,
    `  -H ${quoted(keyHeader(carriers))} \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d ${quoted(body)}`,
  ].join('\n');
}

/** The first place where keys are expected that is a header. */
export function keyHeader(carriers: readonly string[]): string {
  const carrier = carriers.find((one) => one !== 'query') ?? 'bearer';
  return carrier === 'bearer' ? 'Authorization: Bearer YOUR_KEY' : `${carrier}: YOUR_KEY`;
}
