/** Addresses without an endpoint: what vendors have there and this gateway does not offer, and errors in the form of the client. Pure. */
import type { Unrouted } from '../../core/contract/public-operation.ts';
import { table } from '../../core/contract/table.ts';
import { dialectOf, renderError } from '../common/kit/dialects.ts';

interface NotOffered {
  /** The beginning of the sentence that clients get. */
  readonly says: string;
  /** For the documents. */
  readonly why: string;
}

const vendors =
  'It lives in an account at one vendor; another vendor, or another key of the same one, could not use it.';
const trained: NotOffered = {
  says: 'Fine-tuning is',
  why: 'A trained model belongs to one account at one vendor. It can be sold as a model once it is trained.',
};
const replaced = 'Its vendor has replaced it by responses and conversations, which are offered for every chat model.';
const cached: NotOffered = {
  says: 'Cached contents are',
  why: 'It is billed by the hour at one vendor. Marks in prompts and automatic caches pass and are priced.',
};
const listed = 'if `providers.NAME.shared_ids` lists it.';

/** By the first segment behind the version. */
export const notOffered: Readonly<Record<string, NotOffered>> = table({
  agents: { says: 'Agents are', why: vendors },
  assistants: { says: 'Assistants are', why: replaced },
  cachedContents: cached,
  caches: { ...cached, says: 'Caches are' },
  containers: {
    says: 'Containers are',
    why: 'A tool that runs code makes its own; its id is taken in later turns of the account.',
  },
  corpora: { says: 'Corpora are', why: vendors },
  environments: { says: 'Environments are', why: vendors },
  evals: { says: 'Evals are', why: 'It is a service about models, not a call of one.' },
  fileSearchStores: { says: 'File search stores are', why: vendors },
  'fine-tunes': trained,
  fine_tuning: trained,
  interactions: {
    says: 'Interactions are',
    why: 'It is a conversation kept at one vendor. Conversations of the gateway work with every chat model.',
  },
  prompts: {
    says: 'Prompt objects are',
    why: `It is kept at one vendor. Requests may name one of the operator, ${listed}`,
  },
  sessions: { says: 'Sessions are', why: vendors },
  skills: { says: 'Skills are', why: vendors },
  threads: { says: 'Threads are', why: replaced },
  tunedModels: trained,
  vector_stores: {
    says: 'Vector stores are',
    why: `It is billed by the day at one vendor. Searches may name a store of the operator, ${listed}`,
  },
});

const versioned = /^\/v1(?:beta|alpha)?\/([\w-]+)/;

export const unrouted: Unrouted = {
  explain({ method, path }) {
    const found = notOffered[versioned.exec(path)?.[1] ?? ''];
    return found === undefined
      ? undefined
      : `${found.says} not offered here: this gateway does not answer ${method} ${path}.`;
  },
  renderError: (error, { id, request }) =>
    versioned.test(request.path) ? renderError(error, dialectOf(request), id) : undefined,
};
