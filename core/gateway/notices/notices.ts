/** Remarks on the configuration of a gateway that is set up, each with its place in the files where that is known. */
import type { ConfigNotice } from '../../contract/config-files.ts';
import type { Notice } from '../../contract/contract.ts';
import type { InstalledPlugin } from '../../http/chain.ts';
import { type GatewayFile, unusedSections } from '../config.ts';
import { descriptorLimit, shortage } from '../descriptors.ts';
import type { LoadedYaml } from '../yaml.ts';
import { implausible } from './implausible.ts';

/** No value of a variable or secret is in them. */
export function noticesOf(file: GatewayFile, plugins: readonly InstalledPlugin[]): ConfigNotice[] {
  const { sockets, upstream_connections: perPool = 0 } = file.settings.server;
  const stated = plugins.reduce((sum, { instance }) => sum + (instance.checks?.upstreamConnections?.(perPool) ?? 0), 0);
  const short = shortage(descriptorLimit(), { sockets, upstreamConnections: Math.max(stated, perPool) });
  const listed = new Set(plugins.map(({ plugin }) => plugin.name));
  const unused = unusedSections(file, listed).map(({ name, text }) => ({ text, path: [name] }));
  const own = [...(short === undefined ? [] : [{ text: short }]), ...unused, ...implausible(file)];
  return [
    ...own.map((remark) => placed({ level: 'warning', ...remark }, file.yaml)),
    ...plugins.flatMap(({ plugin, instance }) =>
      (instance.checks?.notices?.() ?? []).map(({ path, ...notice }) =>
        placed({ ...notice, ...(path === undefined ? {} : { path: [plugin.name, ...path] }) }, file.yaml),
      ),
    ),
  ];
}

function placed({ path, where, ...notice }: Notice & { readonly where?: string }, yaml: LoadedYaml): ConfigNotice {
  const place = where ?? (path === undefined ? yaml.whereOf(notice.text) : yaml.where(path));
  return { ...notice, text: yaml.hide(notice.text), ...(place === undefined ? {} : { where: place }) };
}

/** As `check` prints it behind its level. */
export function lineOfNotice({ where, text }: ConfigNotice): string {
  return where === undefined ? text : `${where}: ${text}`;
}
