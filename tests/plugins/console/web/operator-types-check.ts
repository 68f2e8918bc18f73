/** What the operator's pages believe of the API is what its routes answer: for the type checker alone. */
import type { hc, InferResponseType } from 'hono/client';
import type { Api } from '../../../../plugins/console/api/index.ts';
import type * as sale from '../../../../plugins/console/web/src/pages/operator/sale-types.ts';
import type * as web from '../../../../plugins/console/web/src/pages/operator/types.ts';

type Admin = ReturnType<typeof hc<Api>>['admin'];
type Told<Route> = Route extends (...asked: never[]) => unknown ? InferResponseType<Route, 200> : never;
/** The server's answers have the types that the pages expect. */
type Fits<Server extends Page, Page> = Server;
interface Rows<Row> {
  readonly rows: readonly Row[];
}

export type Checked = [
  Fits<Told<Admin['monitor']['$get']>, web.Monitor>,
  Fits<Told<Admin['monitor']['series']['$get']>, web.MonitorSeries>,
  Fits<Told<Admin['monitor']['groups']['$get']>, Rows<web.Group>>,
  Fits<Told<Admin['requests']['$get']>, web.Page<web.OperatorRequest>>,
  Fits<Told<Admin['requests'][':id']['$get']>, web.OperatorStory>,
  Fits<Told<Admin['requests'][':id']['bodies']['$get']>, web.KeptBodies>,
  Fits<Told<Admin['recordings']['$get']>, web.Recordings>,
  Fits<Told<Admin['upstreams']['$get']>, Rows<web.Upstream>>,
  Fits<Told<Admin['upstreams'][':provider']['choices']['$get']>, Rows<web.TestChoice>>,
  Fits<Told<Admin['upstreams'][':provider']['test']['$post']>, web.TestResult>,
  Fits<Told<Admin['accounts']['$get']>, web.Page<web.AccountRow>>,
  Fits<Told<Admin['accounts'][':id']['$get']>, web.AccountDetail>,
  Fits<Told<Admin['accounts'][':id']['keys']['$get']>, web.Page<web.AccountKey>>,
  Fits<Told<Admin['accounts'][':id']['ledger']['$get']>, web.Page<web.LedgerRow>>,
  Fits<Told<Admin['tasks']['$get']>, web.Page<web.OperatorTask>>,
  Fits<Told<Admin['people']['$get']>, web.Page<web.Person>>,
  Fits<Told<Admin['people'][':id']['reset']['$post']>, sale.Handover>,
  Fits<Told<Admin['plans']['$get']>, Rows<web.Plan> & { readonly default: string }>,
  Fits<Told<Admin['codes']['$get']>, web.Page<sale.Code>>,
  Fits<Told<Admin['codes']['$post']>, sale.MadeCodes>,
  Fits<Told<Admin['codes']['batches']['$get']>, Rows<sale.Batch>>,
  Fits<Told<Admin['prices']['$get']>, Rows<sale.PricedModel>>,
  Fits<Told<Admin['prices']['versions']['$get']>, sale.PriceVersions>,
  Fits<Told<Admin['prices']['quote']['$post']>, sale.Quote>,
  Fits<Told<Admin['money']['$get']>, sale.MoneyTotals>,
  Fits<Told<Admin['money']['reconcile']['$post']>, sale.Reconciliation>,
  Fits<Told<Admin['nodes']['$get']>, Rows<sale.NodeRow>>,
  Fits<Told<Admin['audit']['$get']>, web.Page<sale.AuditRow>>,
  Fits<Told<Admin['tokens']['$get']>, Rows<sale.Token>>,
  Fits<Told<Admin['config']['$get']>, sale.ConfigAnswer>,
  Fits<Told<Admin['config']['check']['$post']>, sale.ConfigCheck>,
];

/** A route that answered nothing would fit everything. */
type Is<Actual, Expected> = [Actual] extends [never] ? never : Expected;
export const neverEmpty: Is<Checked[number], true> = true;
