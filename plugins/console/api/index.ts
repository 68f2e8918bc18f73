/** The whole API as one app, and its type for typed clients. */
import { OpenAPIHono } from '@hono/zod-openapi';
import type { Schema } from 'hono/types';
import { authorizationRoutes } from '../key-requests/authorize.ts';
import { keyRequestRoutes } from '../key-requests/routes.ts';
import { keyTokenRoutes } from '../key-requests/token.ts';
import { noticeRoutes } from '../notices/routes.ts';
import { viewRoutes } from '../saved-views/routes.ts';
import { activityRoutes } from './activity.ts';
import { accountChangeRoutes } from './admin/account-changes.ts';
import { accountRetentionRoutes } from './admin/account-retention.ts';
import { accountRoutes } from './admin/accounts.ts';
import { alertRoutes } from './admin/alerts.ts';
import { operatorBatchRoutes } from './admin/batches.ts';
import { bodyRoutes, recordingRoutes } from './admin/bodies.ts';
import { codeRoutes } from './admin/codes.ts';
import { configRoutes } from './admin/config.ts';
import { configHistoryRoutes } from './admin/config-history.ts';
import { operatorFileRoutes } from './admin/files.ts';
import { auditRoutes, moneyRoutes, tokenRoutes } from './admin/operations.ts';
import { peopleRoutes } from './admin/people.ts';
import { accessWith, pluginPageRoutes } from './admin/plugin-pages.ts';
import { priceRoutes } from './admin/prices.ts';
import { providerRoutes } from './admin/providers.ts';
import { operatorTaskRoutes } from './admin/tasks.ts';
import { requestRoutes, trafficRoutes } from './admin/traffic.ts';
import { upstreamRoutes } from './admin/upstreams.ts';
import { vendorSecretRoutes } from './admin/vendor-secrets.ts';
import { answerCacheRoutes } from './catalog/answer-cache.ts';
import { cachedRoutes } from './catalog/cached.ts';
import { comparisonRoutes } from './catalog/comparison.ts';
import { modelRoutes } from './catalog/models.ts';
import { publicRoutes } from './catalog/public.ts';
import { batchRoutes } from './files/batches.ts';
import { fileRoutes } from './files/files.ts';
import { homeRoutes } from './home.ts';
import { keyRoutes } from './keys.ts';
import { meRoutes } from './me.ts';
import { accountMemberRoutes } from './organizations/account-members.ts';
import { accountNameRoutes } from './organizations/account-name.ts';
import { memberAuditRoutes } from './organizations/audit.ts';
import { budgetRoutes } from './organizations/budgets.ts';
import { companyRoutes } from './organizations/company.ts';
import { companyProviderRoutes } from './organizations/company-provider.ts';
import { creditLineRoutes } from './organizations/credit-lines.ts';
import { directoryRoutes } from './organizations/directory.ts';
import { invitationRoutes } from './organizations/invitations.ts';
import { memberRoutes } from './organizations/members.ts';
import { ownProjectRoutes } from './organizations/projects.ts';
import { statementRoutes } from './organizations/statements.ts';
import { usageChoiceRoutes } from './organizations/usage-choices.ts';
import { projectRoutes } from './projects.ts';
import { documentOf } from './routing/document.ts';
import { guard, renderError } from './routing/guard.ts';
import { type ConsoleServices, refuseInvalid, type Setting } from './routing/router.ts';
import type { Routes } from './routing/routes.ts';
import { tagRoutes } from './tags.ts';
import { taskRoutes } from './tasks.ts';
import { usageRoutes } from './usage.ts';
import { paymentRoutes, walletRoutes } from './wallet.ts';

const topics = [
  meRoutes,
  viewRoutes,
  homeRoutes,
  keyRoutes,
  keyRequestRoutes,
  authorizationRoutes,
  keyTokenRoutes,
  activityRoutes,
  tagRoutes,
  cachedRoutes,
  answerCacheRoutes,
  usageChoiceRoutes,
  usageRoutes,
  comparisonRoutes,
  modelRoutes,
  publicRoutes,
  taskRoutes,
  fileRoutes,
  batchRoutes,
  walletRoutes,
  statementRoutes,
  creditLineRoutes,
  paymentRoutes,
  noticeRoutes,
  projectRoutes,
  ownProjectRoutes,
  memberRoutes,
  invitationRoutes,
  companyRoutes,
  companyProviderRoutes,
  directoryRoutes,
  memberAuditRoutes,
  accountNameRoutes,
  accountMemberRoutes,
  budgetRoutes,
  trafficRoutes,
  alertRoutes,
  requestRoutes,
  bodyRoutes,
  recordingRoutes,
  upstreamRoutes,
  vendorSecretRoutes,
  accountRoutes,
  accountChangeRoutes,
  accountRetentionRoutes,
  peopleRoutes,
  providerRoutes,
  codeRoutes,
  priceRoutes,
  operatorTaskRoutes,
  operatorFileRoutes,
  operatorBatchRoutes,
  moneyRoutes,
  auditRoutes,
  tokenRoutes,
  configRoutes,
  configHistoryRoutes,
] as const;

type KnownOf<Topics extends readonly ((services: ConsoleServices) => Routes)[]> = UnionToIntersection<
  ReturnType<Topics[number]>['known']
>;
type UnionToIntersection<Union> = (Union extends unknown ? (member: Union) => void : never) extends (
  all: infer All extends Schema,
) => void
  ? All
  : never;

/** `hc<Api>('/console/api')` of hono/client is a typed client of it. */
export type Api = OpenAPIHono<Setting, KnownOf<typeof topics>>;

/** The API below `/console/api`. */
export function createApi(services: ConsoleServices): Api {
  const app = new OpenAPIHono<Setting>(refuseInvalid);
  app.onError(renderError);
  const access = accessWith(services.addedPages());
  app.use('*', guard(services, access));
  for (const routesOf of topics) app.route('/', routesOf(services).app);
  app.route('/', pluginPageRoutes(services).app);
  app.get('/openapi.json', (c) => c.json(documentOf(app, services.settings.name, access)));
  return app as unknown as Api;
}
