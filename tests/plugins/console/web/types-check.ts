/** What the pages believe of the API is what its schemas say: for the type checker alone. */
import type { z } from '@hono/zod-openapi';
import type { poolAnswer } from '../../../../plugins/console/api/home.ts';
import type { keyRow } from '../../../../plugins/console/api/keys.ts';
import type { ledgerRow } from '../../../../plugins/console/api/ledger-rows.ts';
import type { planCard } from '../../../../plugins/console/api/plan-cards.ts';
import type { priceSheet } from '../../../../plugins/console/api/price-sheet.ts';
import type { requestRow, requestStory, requestSums } from '../../../../plugins/console/api/request-rows.ts';
import type * as web from '../../../../plugins/console/web/src/api/types.ts';

type ResponseOf<Schema extends z.ZodType> = z.infer<Schema>;
/** The server's answers have the types that the pages expect. */
type Fits<Server extends Page, Page> = Server;

export type Checked = [
  Fits<ResponseOf<typeof poolAnswer>, web.Pool>,
  Fits<ResponseOf<typeof keyRow>, Omit<web.KeyRow, 'spent30d' | 'capSpent'>>,
  Fits<ResponseOf<typeof ledgerRow>, web.LedgerRow>,
  Fits<ResponseOf<typeof planCard>, web.Plan>,
  Fits<ResponseOf<typeof priceSheet>, web.PriceSheet>,
  Fits<ResponseOf<typeof requestRow>, web.RequestRow>,
  Fits<ResponseOf<typeof requestStory>, web.RequestStory>,
  Fits<ResponseOf<typeof requestSums>, web.RequestSums>,
];
