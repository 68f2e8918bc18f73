/** The service by which runs with tools search stores: the run makes the calls of the model, so that they are on its bill. */
import type { JsonObject } from '../../core/json/json.ts';
import { invalid } from '../../core/json/request-body.ts';
import type { AskedStores, OwnStores, StoreSearch } from '../common/domain/stored-files.ts';
import { expired, noSuchStore, storePrefix } from './access.ts';
import { limitIn, thresholdIn } from './asked.ts';
import { embeddingBody, embeddingPath, vectorsIn } from './embed.ts';
import { filterIn } from './filters.ts';
import type { Asked, Searches } from './search.ts';
import type { Store } from './shapes.ts';
import type { StoreRows } from './store-rows.ts';

/** Stores of one search. */
const mostStores = 10;
const usualResults = 20;

export function openOwnStores(stores: StoreRows, searches: Searches): OwnStores {
  return {
    isOwn: (id) => id.startsWith(storePrefix),
    async open(accountId, asked) {
      const { field } = asked;
      const terms = {
        filter: filterIn(asked.filters, `${field}.filters`),
        limit: limitIn(asked.max_num_results, `${field}.max_num_results`, usualResults),
        threshold: thresholdIn(asked.ranking_options, `${field}.ranking_options`),
      };
      const groups = byModel(await storesOf(stores, accountId, asked));
      return {
        requests: (query) => groups.map(([store]) => ({ path: embeddingPath, body: embeddingBody(store!, [query]) })),
        async find(answers) {
          const vectors = answers.map((answer: JsonObject) => vectorsIn(answer, 1));
          const searched = groups.flatMap((group, index) =>
            group.map((store): Asked => ({ store, vectors: vectors[index] ?? [] })),
          );
          if (vectors.includes(undefined) || vectors.length !== groups.length) return undefined;
          return searches.within(accountId, () => searches.find(accountId, searched, terms));
        },
      } satisfies StoreSearch;
    },
  };
}

async function storesOf(stores: StoreRows, accountId: string, { ids, field }: AskedStores): Promise<Store[]> {
  const each = [...new Set(ids)];
  if (each.length > mostStores)
    throw invalid(`A search has at most ${mostStores} stores.`, `${field}.vector_store_ids`);
  const found: Store[] = [];
  for (const id of each) {
    const at = `${field}.vector_store_ids[${ids.indexOf(id)}]`;
    const store = await stores.find(accountId, id);
    if (store === undefined) throw noSuchStore(at);
    if (store.isExpired) throw expired(at);
    found.push(store);
  }
  return found;
}

/** Stores of one model take one vector. */
function byModel(stores: readonly Store[]): Store[][] {
  const groups = Map.groupBy(stores, ({ model, dimensions }) => JSON.stringify([model, dimensions]));
  return [...groups.values()];
}
