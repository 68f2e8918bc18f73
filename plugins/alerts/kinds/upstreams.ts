/** Kinds of alerts about vendors, as each process sees them: open circuits, keys in cooldown. */
import type { AlertKind } from '../../common/domain/admin/alerts.ts';
import type { UpstreamAdmin } from '../../common/domain/admin/upstreams.ts';

const common = {
  unit: 'count',
  bad: 'above',
  defaults: { threshold: 0, clear: 0, windowMs: 600_000, forMs: 0, quietMs: 120_000, least: 0 },
} as const;

export function upstreamKinds(upstreams: () => UpstreamAdmin | undefined): AlertKind[] {
  return [
    {
      ...common,
      name: 'circuit_open',
      title: 'The circuit of an upstream is open: it fails and is passed over',
      fields: { provider: 'text', model: 'text', failed: 'count', recent: 'count' },
      observe: () =>
        (upstreams()?.list() ?? []).flatMap(({ provider, targets = [] }) =>
          targets
            .filter(({ circuit }) => circuit !== 'closed')
            .map(({ model, failed, recent }) => ({
              subject: `${provider}/${model}`,
              value: 1,
              fields: { provider, model, failed, recent },
            })),
        ),
    },
    {
      ...common,
      name: 'key_resting',
      title: 'A key of a vendor is not used after a refusal',
      fields: { provider: 'text' },
      // A short cooldown after a rate limit is everyday.
      defaults: { ...common.defaults, forMs: 300_000 },
      observe: () =>
        (upstreams()?.list() ?? []).flatMap(({ provider, keys }) =>
          keys
            .filter(({ restsMs, disabled }) => restsMs > 0 && !disabled)
            .map(({ credential }) => ({ subject: credential, value: 1, fields: { provider } })),
        ),
    },
  ];
}
