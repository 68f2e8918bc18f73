/** Token log probabilities between `logprobsResult` and the canonical format. Pure. */
import { isObject, type JsonObject, listOf, objectOf } from '../../../../core/json/json.ts';
import type { TokenLogprob } from '../../../common/canonical/prompt.ts';

/** undefined if the candidate has none. */
export function logprobsOf(result: unknown): TokenLogprob[] | undefined {
  const {
    chosenCandidates,
    chosen_candidates: snakeChosen,
    topCandidates,
    top_candidates: snakeTop,
  } = objectOf(result) ?? {};
  const tops = listOf(topCandidates ?? snakeTop);
  const tokens: TokenLogprob[] = [];
  for (const [at, chosen] of listOf(chosenCandidates ?? snakeChosen).entries()) {
    const token = tokenOf(chosen);
    if (token === undefined) continue;
    const top = listOf(objectOf(tops[at])?.['candidates']).map(tokenOf);
    tokens.push({ ...token, ...(top.length === 0 ? {} : { top: top.filter((one) => one !== undefined) }) });
  }
  return tokens.length === 0 ? undefined : tokens;
}

function tokenOf(candidate: unknown): TokenLogprob | undefined {
  if (!isObject(candidate) || typeof candidate['token'] !== 'string') return undefined;
  const logprob = candidate['logProbability'] ?? candidate['log_probability'];
  return { token: candidate['token'], logprob: typeof logprob === 'number' ? logprob : 0 };
}

export function logprobsResult(tokens: readonly TokenLogprob[]): JsonObject {
  const chosenCandidates = tokens.map(candidateOf);
  if (tokens.every((token) => token.top === undefined)) return { chosenCandidates };
  return { chosenCandidates, topCandidates: tokens.map(({ top }) => ({ candidates: (top ?? []).map(candidateOf) })) };
}

function candidateOf({ token, logprob }: TokenLogprob): JsonObject {
  return { token, logProbability: logprob };
}
