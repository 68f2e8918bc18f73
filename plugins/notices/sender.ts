/** Observes values of accounts against their thresholds, and makes a message of the crossings of each kind. */
import type { Host } from '../../core/contract/contract.ts';
import {
  type NoticeChoice,
  type NoticeKind,
  type NoticeLanguage,
  type NoticeObservation,
  type NoticeSender,
  noticeKinds,
} from '../common/domain/admin/notices.ts';
import { parseUsd } from '../common/domain/money.ts';
import { type NoticesConfig, usualChannels, usualThreshold } from './config.ts';
import { judge } from './crossing.ts';
import type { Deliveries } from './deliveries.ts';
import { type NewMessage, type NoticeRows, type StateChange, stateKey } from './rows.ts';

/** Lines of one message; further crossings are counted. */
const mostLines = 20;

export interface Observed {
  readonly accountId: string;
  readonly seen: readonly NoticeObservation[];
}

export class Sender implements NoticeSender {
  readonly #host: Host;
  readonly #rows: NoticeRows;
  readonly #deliveries: Pick<Deliveries, 'changed'>;
  readonly #config: () => NoticesConfig;

  constructor(host: Host, rows: NoticeRows, deliveries: Pick<Deliveries, 'changed'>, config: () => NoticesConfig) {
    this.#host = host;
    this.#rows = rows;
    this.#deliveries = deliveries;
    this.#config = config;
  }

  kinds(): readonly NoticeKind[] {
    return this.#host.extensions(noticeKinds);
  }

  observe(accountId: string, seen: readonly NoticeObservation[]): Promise<void> {
    return this.observeAll([{ accountId, seen }]);
  }

  /** Two statements for all, and a transaction for each account of which something has changed. */
  async observeAll(all: readonly Observed[], chosen?: ChosenKinds): Promise<void> {
    const observed = all.filter(({ seen }) => seen.length > 0);
    const ids = observed.map(({ accountId }) => accountId);
    const names = [...new Set(observed.flatMap(({ seen }) => seen.map(({ kind }) => kind)))];
    const [choices, states] = await Promise.all([chosen ?? this.chosen(ids), this.#rows.states(ids, names)]);
    for (const { accountId, seen } of observed) {
      const kinds = choices.get(accountId)!;
      const before = states.get(accountId);
      const changes = seen.flatMap((one): Change[] => {
        const chosen = kinds.get(one.kind);
        if (chosen === undefined || chosen.channels.length === 0) return [];
        const known = before?.get(stateKey(one.kind, one.subject));
        const { state, isCrossing } = judge(chosen.kind, chosen.threshold, one, known);
        return state === undefined ? [] : [{ ...one, ...state, isCrossing }];
      });
      if (changes.length > 0) await this.#cross(accountId, changes, kinds);
    }
  }

  async #cross(accountId: string, changes: readonly Change[], kinds: ReadonlyMap<string, Chosen>): Promise<void> {
    const isSent = changes.some(({ isCrossing }) => isCrossing);
    const settings = isSent ? await this.#rows.settings(accountId) : undefined;
    const language = settings?.language ?? this.#config().language;
    const made = await this.#rows.cross(accountId, changes, this.#host.clock.now(), (stored) => {
      const crossed = (stored as readonly Change[]).filter(({ isCrossing }) => isCrossing);
      return [...Map.groupBy(crossed, ({ kind }) => kind)].map(([name, ofKind]) =>
        messageOf(kinds.get(name)!, ofKind, language),
      );
    });
    if (made > 0) this.#deliveries.changed();
  }

  /** The kinds as these accounts have them. */
  async chosen(accountIds: readonly string[]): Promise<ChosenKinds> {
    const choices = await this.#rows.choices(accountIds);
    return new Map(accountIds.map((accountId) => [accountId, this.#chosen(choices.get(accountId) ?? [])] as const));
  }

  /** The most of all thresholds of a kind in days, as milliseconds; undefined: no account wants it. */
  async mostDays(name: string): Promise<number | undefined> {
    const kind = this.kinds().find((one) => one.name === name);
    if (kind === undefined) return undefined;
    const config = this.#config();
    const usual = usualChannels(config, kind).length === 0 ? 0n : usualThreshold(config, kind);
    const chosen = await this.#rows.mostThreshold(name);
    const most = chosen > usual ? chosen : usual;
    return most === 0n ? undefined : Number(timesDay(most));
  }

  /** The least of all thresholds of a kind in days, as milliseconds; undefined: no account wants it. */
  async leastDays(name: string): Promise<number | undefined> {
    const kind = this.kinds().find((one) => one.name === name);
    if (kind === undefined) return undefined;
    const config = this.#config();
    const usual = usualThreshold(config, kind);
    const { isChosen, least = usual } = await this.#rows.leastThreshold(name);
    if (!isChosen && usualChannels(config, kind).length === 0) return undefined;
    return Number(((least < usual ? least : usual) * dayMs) / billion);
  }

  #chosen(choices: readonly NoticeChoice[]): ReadonlyMap<string, Chosen> {
    const config = this.#config();
    return new Map(
      this.kinds().map((kind): [string, Chosen] => {
        const own = choices.find((choice) => choice.kind === kind.name);
        const threshold = own?.threshold === undefined ? usualThreshold(config, kind) : parseUsd(own.threshold);
        return [kind.name, { kind, threshold, channels: own?.channels ?? usualChannels(config, kind) }];
      }),
    );
  }
}

export type ChosenKinds = ReadonlyMap<string, ReadonlyMap<string, Chosen>>;

const [billion, dayMs] = [1_000_000_000n, 86_400_000n];

/** Billionths of a day, rounded up to whole days. */
const timesDay = (billionths: bigint) => BigInt(Math.ceil(Number(billionths) / 1e9)) * 86_400_000n;

interface Change extends StateChange, NoticeObservation {
  readonly isCrossing: boolean;
}
interface Chosen {
  readonly kind: NoticeKind;
  readonly threshold: bigint;
  readonly channels: NewMessage['channels'];
}

function messageOf({ kind, channels }: Chosen, crossed: readonly Change[], language: NoticeLanguage): NewMessage {
  const shown = crossed.slice(0, mostLines);
  const lines = shown.map(({ fields }) => kind.line(fields, language));
  if (crossed.length > shown.length) lines.push(`+ ${crossed.length - shown.length}`);
  const data = shown.map(({ subject, fields }) => ({ ...(subject === '' ? {} : { subject }), ...fields }));
  return { kind: kind.name, channels, message: { title: kind.title[language], text: lines.join('\n'), data } };
}
