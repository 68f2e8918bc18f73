/** Pages for clients at `/docs/`, made of this gateway's own configuration. */
import { definePlugin, type Endpoint } from '../../core/contract/contract.ts';
import { keyRules, keyring } from '../common/domain/accounts.ts';
import { accountAdmin } from '../common/domain/admin/accounts.ts';
import { priceQueries } from '../common/domain/admin/prices.ts';
import { errorShape } from '../common/domain/error-shape.ts';
import { pool } from '../common/domain/ledger.ts';
import { catalog } from '../common/domain/models.ts';
import { consoleSite, docsSite } from '../common/domain/pages/console-site.ts';
import { plans } from '../common/domain/plans.ts';
import { multipliers } from '../common/domain/price-ratio.ts';
import { envelopeAnswer } from '../common/kit/error-envelope.ts';
import { config, type DocsConfig } from './config.ts';
import { DocsSite } from './site/site.ts';

const methods = ['GET', 'HEAD'] as const;
const paths = ['/docs', '/docs/*', '/llms.txt'];

export default definePlugin<DocsConfig>({
  name: 'docs',
  config,
  services: {
    optional: [
      ...[catalog, priceQueries, plans, multipliers, errorShape, keyRules],
      ...[keyring, accountAdmin, pool, consoleSite],
    ],
    provides: [docsSite],
  },
  setup(host, settings) {
    const site = new DocsSite(host, settings);
    host.provide(docsSite, { address: () => site.root() });
    const common: Omit<Endpoint, 'method' | 'path'> = {
      operation: 'docs',
      body: 'none',
      keyless: true,
      sameOrigin: true,
      unlogged: true,
      charges: false,
      renderError: envelopeAnswer,
      handle: (exchange) => site.answer(exchange),
    };
    return {
      endpoints: methods.flatMap((method) => paths.map((path): Endpoint => ({ ...common, method, path }))),
      reload: { prepare: (changed) => () => site.use(changed) },
    };
  },
});
