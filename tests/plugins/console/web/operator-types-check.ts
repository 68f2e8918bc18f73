/** What the operator's pages believe of the API is what its routes answer: for the type checker alone. */
import type { hc, InferResponseType } from 'hono/client';
import type { Api } from '../../../../plugins/console/api/index.ts';
import type * as sale from '../../../../plugins/console/web/src/pages/operator/sale-types.ts';
import type * as web from '../../../../plugins/console/web/src/pages/operator/types.ts';

type Admin = ReturnType<typeof hc<Api>>['admin'];
type ValueOf<Route> = Route extends (...requested: never[]) => unknown ? InferResponseType<Route, 200> : never;
/** The server's answers have the types that the pages expect. */
type Fits<Server extends Page, Page> = Server;
interface Rows<Row> {
  readonly rows: readonly Row[];
}

export type Checked = [
  Fits<ValueOf<Admin['monitor']['$get']>, web.Monitor>,
  Fits<ValueOf<Admin['monitor']['series']['$get']>, web.MonitorSeries>,
  Fits<ValueOf<Admin['monitor']['groups']['$get']>, Rows<web.Group>>,
  Fits<ValueOf<Admin['requests']['$get']>, web.Page<web.OperatorRequest>>,
  Fits<ValueOf<Admin['requests'][':id']['$get']>, web.OperatorStory>,
  Fits<ValueOf<Admin['requests'][':id']['bodies']['$get']>, web.KeptBodies>,
  Fits<ValueOf<Admin['recordings']['$get']>, web.Recordings>,
  Fits<ValueOf<Admin['upstreams']['$get']>, Rows<web.Upstream>>,
  Fits<ValueOf<Admin['upstreams'][':provider']['choices']['$get']>, Rows<web.TestChoice>>,
  Fits<ValueOf<Admin['upstreams'][':provider']['test']['$post']>, web.TestResult>,
  Fits<ValueOf<Admin['accounts']['$get']>, web.Page<web.AccountRow>>,
  Fits<ValueOf<Admin['accounts'][':id']['$get']>, web.AccountDetail>,
  Fits<ValueOf<Admin['accounts'][':id']['keys']['$get']>, web.Page<web.AccountKey>>,
  Fits<ValueOf<Admin['accounts'][':id']['ledger']['$get']>, web.Page<web.LedgerRow>>,
  Fits<ValueOf<Admin['tasks']['$get']>, web.Page<web.OperatorTask>>,
  Fits<ValueOf<Admin['people']['$get']>, web.Page<web.Person>>,
  Fits<ValueOf<Admin['people'][':id']['reset']['$post']>, sale.Handover>,
  Fits<ValueOf<Admin['plans']['$get']>, Rows<web.Plan> & { readonly default: string }>,
  Fits<ValueOf<Admin['codes']['$get']>, web.Page<sale.Code>>,
  Fits<ValueOf<Admin['codes']['$post']>, sale.MadeCodes>,
  Fits<ValueOf<Admin['codes']['batches']['$get']>, Rows<sale.Batch>>,
  Fits<ValueOf<Admin['prices']['$get']>, Rows<sale.PricedModel>>,
  Fits<ValueOf<Admin['prices']['versions']['$get']>, sale.PriceVersions>,
  Fits<ValueOf<Admin['prices']['quote']['$post']>, sale.Quote>,
  Fits<ValueOf<Admin['money']['$get']>, sale.MoneyTotals>,
  Fits<ValueOf<Admin['money']['reconcile']['$post']>, sale.Reconciliation>,
  Fits<ValueOf<Admin['nodes']['$get']>, Rows<sale.NodeRow>>,
  Fits<ValueOf<Admin['audit']['$get']>, web.Page<sale.AuditRow>>,
  Fits<ValueOf<Admin['tokens']['$get']>, Rows<sale.Token>>,
  Fits<ValueOf<Admin['config']['$get']>, sale.ConfigAnswer>,
  Fits<ValueOf<Admin['config']['check']['$post']>, sale.ConfigCheck>,
];

/** A route that answered nothing would fit everything. */
type Is<Actual, Expected> = [Actual] extends [never] ? never : Expected;
export const neverEmpty: Is<Checked[number], true> = true;
