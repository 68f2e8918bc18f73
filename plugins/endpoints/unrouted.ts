/** Addresses without an endpoint: what vendors have there and this gateway does not offer, and errors in the form of the client. Pure. */
import type { Unrouted } from '../../core/contract/public-operation.ts';
import { table } from '../../core/contract/table.ts';
import { dialectOf, renderError } from '../common/kit/dialects.ts';

/** By the first segment behind the version. */
const notOffered: Readonly<Record<string, string>> = table({
  agents: 'Agents are',
  assistants: 'Assistants are',
  cachedContents: 'Cached contents are',
  caches: 'Caches are',
  containers: 'Containers are',
  corpora: 'Corpora are',
  environments: 'Environments are',
  evals: 'Evals are',
  fileSearchStores: 'File search stores are',
  'fine-tunes': 'Fine-tuning is',
  fine_tuning: 'Fine-tuning is',
  interactions: 'Interactions are',
  prompts: 'Prompt objects are',
  sessions: 'Sessions are',
  skills: 'Skills are',
  threads: 'Threads are',
  tunedModels: 'Fine-tuning is',
  vector_stores: 'Vector stores are',
});

const versioned = /^\/v1(?:beta|alpha)?\/([\w-]+)/;

export const unrouted: Unrouted = {
  explain({ method, path }) {
    const name = notOffered[versioned.exec(path)?.[1] ?? ''];
    return name === undefined ? undefined : `${name} not offered here: this gateway does not answer ${method} ${path}.`;
  },
  renderError: (error, { id, request }) =>
    versioned.test(request.path) ? renderError(error, dialectOf(request), id) : undefined,
};
