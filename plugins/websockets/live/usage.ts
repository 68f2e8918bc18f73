/** Reads usage by class from `usageMetadata` of a live session. Pure. */
import { isObject, listOf } from '../../../core/json/json.ts';
import { readCount, type Usage } from '../../common/domain/usage.ts';
import { split } from '../../common/wire/counts.ts';

/** undefined: it has no counts. Video is counted with images. */
export function liveUsage(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined;
  const prompt = readCount(value['promptTokenCount']);
  const output = readCount(value['responseTokenCount'] ?? value['candidatesTokenCount']);
  if (prompt === undefined && output === undefined) return undefined;
  const tools = readCount(value['toolUsePromptTokenCount']) ?? 0;
  const heard = byModality(value['promptTokensDetails']);
  const cached = byModality(value['cacheTokensDetails']);
  const spoken = byModality(value['responseTokensDetails']);
  const reasoning = readCount(value['thoughtsTokenCount']) ?? 0;
  const cachedText = Math.max(
    cached.text,
    (readCount(value['cachedContentTokenCount']) ?? 0) - cached.audio - cached.image,
  );
  return {
    ...split((prompt ?? 0) + tools, 'input', [
      ['input_audio', some(Math.max(0, heard.audio - cached.audio))],
      ['input_image', some(Math.max(0, heard.image - cached.image))],
      ['cache_read_audio', some(cached.audio)],
      ['cache_read_image', some(cached.image)],
      ['cache_read', some(cachedText)],
    ]),
    ...split(output ?? 0, 'output', [['output_audio', some(spoken.audio)]]),
    ...(reasoning === 0 ? {} : { reasoning }),
  };
}

/** Searches of the vendor for a turn, and its maps. */
export function groundingUsage(value: unknown): Usage {
  const grounding = isObject(value) ? value : {};
  const queries = listOf(grounding['webSearchQueries']).length + listOf(grounding['imageSearchQueries']).length;
  const hasMaps = listOf(grounding['groundingChunks']).some((chunk) => isObject(chunk) && isObject(chunk['maps']));
  return { ...(queries === 0 ? {} : { web_search: queries }), ...(hasMaps ? { call: 1 } : {}) };
}

interface Modalities {
  text: number;
  audio: number;
  image: number;
}

function byModality(list: unknown): Modalities {
  const sums: Modalities = { text: 0, audio: 0, image: 0 };
  for (const entry of listOf(list)) {
    if (!isObject(entry)) continue;
    const count = readCount(entry['tokenCount']) ?? 0;
    if (entry['modality'] === 'AUDIO') sums.audio += count;
    else if (entry['modality'] === 'IMAGE' || entry['modality'] === 'VIDEO') sums.image += count;
    else sums.text += count;
  }
  return sums;
}

function some(count: number): number | undefined {
  return count === 0 ? undefined : count;
}
