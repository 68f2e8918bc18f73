/** In which state an upstream is, and why: the worst that is true of it. Pure. */

export interface UpstreamKey {
  readonly credential: string;
  readonly disabled: boolean;
  readonly restsMs: number;
  readonly modelRests: readonly { readonly model: string; readonly restsMs: number }[];
  readonly reason?: string | null | undefined;
}
export type Circuit = 'closed' | 'open' | 'half_open';
interface Circuited {
  readonly circuit: Circuit;
  readonly opensForMs: number;
}
interface Upstream {
  readonly disabled: boolean;
  readonly keys: readonly UpstreamKey[];
  readonly targets?: readonly Circuited[];
}
/** `broken`: no key can be used now. `failing`: some model is passed over. `cooling`: some key, or some model on one, rests. */
export type UpstreamState = 'disabled' | 'broken' | 'failing' | 'cooling' | 'keyless' | 'healthy';

/** The state of an upstream `elapsedMs` after the answer. */
export function stateOf({ disabled, keys, targets = [] }: Upstream, elapsedMs = 0): UpstreamState {
  if (disabled) return 'disabled';
  if (keys.length === 0) return 'keyless';
  const usable = keys.filter((key) => !key.disabled && key.restsMs <= elapsedMs);
  if (usable.length === 0) return keys.every((key) => key.disabled) ? 'disabled' : 'broken';
  if (targets.some((target) => circuitOf(target, elapsedMs) !== 'closed')) return 'failing';
  const rests = keys.some(({ restsMs, modelRests }) =>
    [restsMs, ...modelRests.map((one) => one.restsMs)].some((each) => each > elapsedMs),
  );
  return rests ? 'cooling' : 'healthy';
}

/** Whether a key can be used for every model. */
export function keyState(key: UpstreamKey, elapsedMs = 0): 'disabled' | 'resting' | 'partly' | 'ready' {
  if (key.disabled) return 'disabled';
  if (key.restsMs > elapsedMs) return 'resting';
  return key.modelRests.some(({ restsMs }) => restsMs > elapsedMs) ? 'partly' : 'ready';
}

/** The circuit of a model `elapsedMs` after the answer: an open circuit becomes half open after its open time. */
export function circuitOf({ circuit, opensForMs }: Circuited, elapsedMs = 0): Circuit {
  return circuit === 'open' && opensForMs <= elapsedMs ? 'half_open' : circuit;
}

const circuitsWorstFirst: readonly Circuit[] = ['open', 'half_open', 'closed'];

/** Models that fail come first, then those that are asked for most. */
export function worstFirst<Target extends Circuited & { readonly recent: number; readonly failed: number }>(
  targets: readonly Target[],
): Target[] {
  const rank = ({ circuit }: Target) => circuitsWorstFirst.indexOf(circuit);
  const share = ({ recent, failed }: Target) => (recent === 0 ? 0 : failed / recent);
  return targets.toSorted(
    (left, right) => rank(left) - rank(right) || share(right) - share(left) || right.recent - left.recent,
  );
}

/** Whether something of it can be woken: a key that rests, or a circuit that is not closed. */
export function canWake(upstream: Upstream, elapsedMs = 0): boolean {
  const { keys, targets = [] } = upstream;
  const rests = keys.some((key) => ['resting', 'partly'].includes(keyState(key, elapsedMs)));
  return rests || targets.some((target) => circuitOf(target, elapsedMs) !== 'closed');
}

/** Why keys rest, once each. */
export function reasonsOf({ keys }: Upstream): string[] {
  return [...new Set(keys.flatMap(({ reason }) => (reason ? [reason] : [])))];
}

/** `1:05` or `2:03:04`: the rest of a cooldown. Never below zero. */
export function countdown(leftMs: number): string {
  const seconds = Math.max(0, Math.ceil(leftMs / 1_000));
  const parts = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  const shown = parts[0] === 0 ? parts.slice(1) : parts;
  return shown.map((part, at) => (at === 0 ? String(part) : String(part).padStart(2, '0'))).join(':');
}
