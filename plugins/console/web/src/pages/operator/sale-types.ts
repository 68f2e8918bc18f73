/** What the API answers operators about codes, prices, money, nodes, the audit log, tokens and the configuration. */
import type { Answer, RowOf } from '../../api/types.ts';
import type { Admin } from './types.ts';

export type Redemption = RowOf<Answer<Admin['codes'][':id']['redemptions']['$get']>>;
export type Code = RowOf<Answer<Admin['codes']['$get']>>;
export type Gift = Code['gift'];
export type Batch = RowOf<Answer<Admin['codes']['batches']['$get']>>;
export type MadeCodes = Answer<Admin['codes']['$post']>;

export type PricedModel = RowOf<Answer<Admin['prices']['$get']>>;
export type PriceVersions = Answer<Admin['prices']['versions']['$get']>;
export type PriceVersion = PriceVersions['prices'][number];
export type Quote = Answer<Admin['prices']['quote']['$post']>;
export type PriceExample = Answer<Admin['prices']['example']['$post']>;

export type MoneyTotals = Answer<Admin['money']['$get']>;
export type Reconciliation = Answer<Admin['money']['reconcile']['$post']>;
export type NodeRow = RowOf<Answer<Admin['nodes']['$get']>>;
export type AuditRow = RowOf<Answer<Admin['audit']['$get']>>;
export type Token = RowOf<Answer<Admin['tokens']['$get']>>;
export type Handover = Answer<Admin['invitations']['$post']>;

export type ConfigAnswer = Answer<Admin['config']['$get']>;
export type ConfigFile = ConfigAnswer['files'][number];
export type ConfigCheck = Answer<Admin['config']['check']['$post']>;
export type ConfigHistory = Answer<Admin['config']['history']['$get']>;
export type ConfigVersion = RowOf<ConfigHistory>;
export type ConfigDifference = Answer<Admin['config']['history']['difference']['$get']>;
export type RestorePlan = Answer<Admin['config']['history'][':version']['check']['$post']>;
