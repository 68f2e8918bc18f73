/** The services that the console shows, in one place. */

export { configFiles } from '../../core/contract/config-files.ts';
export { accounts } from '../common/domain/accounts.ts';
export { accountAdmin } from '../common/domain/admin/accounts.ts';
export { batchAdmin } from '../common/domain/admin/batches.ts';
export { cacheReport } from '../common/domain/admin/cache.ts';
export { fileAdmin } from '../common/domain/admin/files.ts';
export { ledgerQueries } from '../common/domain/admin/ledger.ts';
export { noticeAdmin } from '../common/domain/admin/notices.ts';
export { priceQueries } from '../common/domain/admin/prices.ts';
export { recordedBodies } from '../common/domain/admin/recorded-bodies.ts';
export { requestQueries } from '../common/domain/admin/requests.ts';
export { shopAdmin } from '../common/domain/admin/shop.ts';
export { taskAdmin } from '../common/domain/admin/tasks.ts';
export { upstreamAdmin, upstreamProbes } from '../common/domain/admin/upstreams.ts';
export { vendorSecrets } from '../common/domain/admin/vendor-secrets.ts';
export { vendorLists, vendorSetup } from '../common/domain/admin/vendor-setup.ts';
export { database } from '../common/domain/database.ts';
export { ledger, pool } from '../common/domain/ledger.ts';
export { catalog } from '../common/domain/models.ts';
export { memberAdmin } from '../common/domain/organizations/members.ts';
export { projectAdmin } from '../common/domain/organizations/projects.ts';
export { statementAdmin } from '../common/domain/organizations/statements.ts';
export { docsSite } from '../common/domain/pages/console-site.ts';
export { plans, shop } from '../common/domain/plans.ts';
export { multipliers } from '../common/domain/price-ratio.ts';
export { uploadedFiles } from '../common/domain/stored-files.ts';
export { guardrailVerdicts } from '../common/guardrails/verdicts.ts';
