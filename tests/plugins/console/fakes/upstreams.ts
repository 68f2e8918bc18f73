/** Vendors with healthy and resting keys, and trials of them, made up. */

import { GatewayError } from '../../../../core/contract/errors.ts';
import type {
  TargetView,
  UpstreamAdmin,
  UpstreamProbes,
  UpstreamView,
} from '../../../../plugins/common/domain/admin/upstreams.ts';
import { models } from './world.ts';

export function fakeUpstreams(): UpstreamAdmin {
  const key = (credential: string, more = {}) => ({
    credential,
    disabled: false,
    restsMs: 0,
    modelRests: [],
    reason: undefined,
    ...more,
  });
  const upstream = (provider: string, protocol: string, url: string, keys: UpstreamView['keys']): UpstreamView => ({
    provider,
    protocols: { [protocol]: url },
    disabled: false,
    keys,
  });
  const rows: UpstreamView[] = [
    upstream('openai', 'chat', 'https://api.openai.example/v1', [
      key('openai#1'),
      key('openai#2', { restsMs: 42_000, reason: '429: rate limited' }),
    ]),
    upstream('anthropic', 'messages', 'https://api.anthropic.example', [
      key('anthropic#1', { modelRests: [{ model: 'claude-sonnet-5', restsMs: 9_000 }], reason: '529: overloaded' }),
    ]),
    {
      ...upstream('google', 'gemini', 'https://generativelanguage.example/v1beta', [key('google#1'), key('google#2')]),
      room: { limit: 40, inFlight: 12, queue: 100, waiting: 0 },
      targets: [
        {
          model: 'gemini-3.8-flash',
          circuit: 'open',
          opensForMs: 7_500,
          inFlight: 12,
          recent: 32,
          failed: 17,
          firstByteMs: 420,
          wholeMs: undefined,
          keys: [{ credential: 'google#1', answered: 0.4, firstByteMs: 420, wholeMs: undefined }],
        },
        {
          model: 'gemini-3.8-pro',
          circuit: 'closed',
          opensForMs: 0,
          inFlight: 1,
          recent: 20,
          failed: 1,
          firstByteMs: 910,
          wholeMs: 8_200,
          keys: [],
        },
      ],
    },
    upstream('xai', 'xai-videos', 'https://api.x.example/v1', [key('xai#1', { disabled: true })]),
  ];
  const change = (provider: string, more: (row: UpstreamView) => UpstreamView) => {
    const index = rows.findIndex((row) => row.provider === provider);
    if (index >= 0) rows[index] = more(rows[index]!);
  };
  return {
    certificates: () => [],
    list: () => rows,
    setDisabled: async (provider, credential, disabled) =>
      change(provider, (row) =>
        credential === undefined
          ? { ...row, disabled }
          : { ...row, keys: row.keys.map((one) => (one.credential === credential ? { ...one, disabled } : one)) },
      ),
    clearCooldown: (provider) =>
      change(provider, (row) => ({
        ...row,
        keys: row.keys.map((one) => ({ ...one, restsMs: 0, modelRests: [] })),
        ...(row.targets === undefined ? {} : { targets: row.targets.map(closed) }),
      })),
  };
}

const closed = (target: TargetView): TargetView => ({ ...target, circuit: 'closed', opensForMs: 0 });

/** The second key of a vendor is refused; every other one answers. */
export function fakeProbes(): UpstreamProbes {
  const nothing = (field: string) => new GatewayError('not_found', `There is no such ${field}.`, { field });
  const choices = (provider: string) => {
    const [protocol] = Object.keys(
      fakeUpstreams()
        .list()
        .find((row) => row.provider === provider)?.protocols ?? {},
    );
    if (protocol === undefined) throw nothing('provider');
    return models
      .filter((model) => model.provider === provider && model.kind === 'chat')
      .map(({ id, upstream }) => ({ model: id, upstreamModel: upstream, protocols: [protocol] }));
  };
  return {
    choices,
    async probe({ provider, credential, model }) {
      const chosen = choices(provider).find((choice) => choice.model === model);
      if (chosen === undefined) throw nothing('model');
      const reply = { protocol: chosen.protocols[0]!, upstreamModel: chosen.upstreamModel };
      if (credential.endsWith('#2'))
        return {
          ...reply,
          ok: false,
          status: 429,
          firstByteMs: 188,
          totalMs: 190,
          error: 'Rate limit reached for *** in organization ***.',
          text: '',
          usage: {},
        };
      return {
        ...reply,
        ok: true,
        status: 200,
        firstByteMs: 412,
        totalMs: 655,
        error: undefined,
        text: 'ok',
        usage: { input: 14, output: 2 },
      };
    },
  };
}
