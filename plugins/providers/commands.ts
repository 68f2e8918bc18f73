/** Operator commands for providers. */
import type { Command } from '../../core/contract/commands.ts';
import type { UpstreamAdmin } from '../common/domain/admin/upstreams.ts';
import { presetsCommand } from './presets.ts';

export function providerCommands(upstreamAdmin: UpstreamAdmin): Command[] {
  return [
    presetsCommand,
    switchCommand(
      upstreamAdmin,
      'providers disable',
      'Takes a provider, or one of its keys, out of use within a second.',
      true,
    ),
    switchCommand(upstreamAdmin, 'providers enable', 'Uses a provider, or one of its keys, again.', false),
    {
      name: 'providers list',
      summary: 'Lists the providers, what they speak, and which of them and of their keys are out of use.',
      run: async () => {
        const views = upstreamAdmin.list();
        const lines = views.map(({ provider, protocols, disabled, keys }) => {
          const off = keys.filter((key) => key.disabled).map(({ credential }) => credential);
          const state = disabled ? 'disabled' : off.length > 0 ? `without ${off.join(', ')}` : 'in use';
          return `${provider}: ${state}; ${keys.length} keys; speaks ${Object.keys(protocols).join(', ')}`;
        });
        return { json: views, text: lines.join('\n') };
      },
    },
  ];
}

function switchCommand(upstreamAdmin: UpstreamAdmin, name: string, summary: string, disabled: boolean): Command {
  return {
    name,
    summary,
    arguments: ['<provider>', '[key]'],
    run: async (values) => {
      const provider = String(values['provider']);
      const credential = typeof values['key'] === 'string' ? values['key'] : undefined;
      await upstreamAdmin.setDisabled(provider, credential, disabled);
      const what = credential ?? provider;
      return {
        json: { provider, credential: credential ?? null, disabled },
        text: `${what} is ${disabled ? 'out of use' : 'in use again'}.`,
      };
    },
  };
}
