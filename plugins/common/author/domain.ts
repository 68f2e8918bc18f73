/** `model-gateway/domain`: what plugins share: context keys, services, extension points, and the nouns of calls, models and money. */

export type { EncodeContext, EncodedRequest, ReplyDecoder } from '../canonical/codec.ts';
export type { Part, Prompt, Turn } from '../canonical/prompt.ts';
export type { Event } from '../canonical/reply.ts';
export { accounts, type Caller, caller } from '../domain/accounts.ts';
export {
  type AdminPage,
  adminPages,
  adminRoute,
  type ClientPage,
  clientPageRoute,
  clientPages,
} from '../domain/admin/admin-pages.ts';
export { type AlertKind, type AlertSinkType, alertKinds, alertSinks } from '../domain/admin/alerts.ts';
export { ledgerQueries } from '../domain/admin/ledger.ts';
export { attempts, call, spendGuard, usageReport } from '../domain/calls.ts';
export { counters } from '../domain/counters.ts';
export { type Database, database } from '../domain/database.ts';
export { ledger, servedBy, serveWithoutAttempt } from '../domain/ledger.ts';
export { type Model, model } from '../domain/models.ts';
export { formatUsd, parseUsd } from '../domain/money.ts';
export { usd } from '../domain/money-schema.ts';
export { plan } from '../domain/plans.ts';
export { target } from '../domain/upstreams.ts';
export type { Usage } from '../domain/usage.ts';
export { type GuardrailCheckType, guardrailChecks } from '../guardrails/checks.ts';
export { type MediaAdapter, mediaAdapters, type Step, type VendorAnswer } from '../media/adapters.ts';
export { type AdmissionRule, admission } from '../wire/admission-rules.ts';
export { type AnswerTransform, type CallTransform, callTransforms } from '../wire/call-transforms.ts';
export { bearerOf, type ComputedScheme, type FixedScheme, Refreshed, vendorCredentials } from '../wire/credentials.ts';
export {
  joinedTexts,
  type PromptRule,
  type PromptTexts,
  promptRules,
  prompts,
  promptTexts,
} from '../wire/prompt-rules.ts';
export { type VariantProtocol, type WireProtocol, wireProtocols } from '../wire/protocols.ts';
