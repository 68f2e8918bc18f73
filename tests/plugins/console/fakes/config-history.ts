/** Applied configurations in memory: a start, a change by hand and a save. */
import { configFiles } from '../../../../core/contract/config-files.ts';
import {
  type Applied,
  ConfigHistory,
  digestOf,
  digestOfAll,
  type HistoryStore,
  type KeptVersion,
} from '../../../../plugins/console/config-history/history.ts';
import type { FakeHost } from '../../../helpers/fakes.ts';

const hourMs = 3_600_000;

export function fakeHistory(host: FakeHost, now: () => number) {
  const versions: KeptVersion[] = [];
  const kept = new Map<string, string>();
  const add = ({ texts, source, actor, reason, auditId }: Applied, at: number) => {
    for (const { text } of texts) kept.set(digestOf(text), text);
    const files = texts.map(({ path, text }) => ({ path, digest: digestOf(text), bytes: text.length }));
    versions.unshift({
      ...{ at, digest: digestOfAll(texts), source, actor, reason, auditId, files },
      version: versions.length + 1,
      node: 'gateway-1',
    });
  };
  const store: HistoryStore = {
    list: async () => versions,
    texts: async () => kept,
    record: async (applied) => add(applied, now()),
  };
  const files = host.find(configFiles);
  if (files !== undefined) {
    const [main, ...others] = files.running();
    const dearer = main!.text.replace('price: 20', 'price: 30');
    const without = main!.text.replace(/\n {4}pro: .*/, '');
    add({ texts: [{ path: main!.path, text: without }, ...others], source: 'start' }, now() - 50 * hourMs);
    add({ texts: [{ path: main!.path, text: dearer }, ...others], source: 'file' }, now() - 26 * hourMs);
    const who = { actor: 'operator@example.test', reason: 'pro was too dear' };
    add({ texts: files.running(), source: 'save', ...who }, now() - 2 * hourMs);
  }
  return { history: new ConfigHistory(store, () => host.get(configFiles)), recorder: { record: store.record } };
}
