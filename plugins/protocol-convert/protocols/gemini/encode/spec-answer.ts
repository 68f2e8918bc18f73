/**
 * Converts the official answer into the specification's shape (2.8): snake_case, with `created` and the members that it
 * requires. Pure.
 */
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import { rename, toSnake } from '../names.ts';

/** `model` and `createdAt` (Unix seconds) apply if the upstream sends none. Error objects are unchanged. */
export function specAnswer(official: JsonObject, model: string, createdAt: number): JsonObject {
  if (isObject(official['error'])) return official;
  const { candidates, modelVersion, createTime, ...others } = official;
  const created = Date.parse(textOf(createTime) ?? '');
  return {
    candidates: listOf(candidates).map(specCandidate),
    ...(rename(others, toSnake) as JsonObject),
    model_version: textOf(modelVersion) ?? model,
    created: Number.isNaN(created) ? createdAt : Math.floor(created / 1000),
  };
}

function specCandidate(candidate: unknown, position: number): JsonObject {
  const { content, index, citationMetadata, ...others } = objectOf(candidate) ?? {};
  return {
    index: index ?? position,
    content: { parts: [], role: 'model', ...(rename(objectOf(content) ?? {}, toSnake) as JsonObject) },
    ...(rename(others, toSnake) as JsonObject),
    ...(isObject(citationMetadata) ? { citation_metadata: specCitations(citationMetadata) } : {}),
  };
}

/** One official host calls the list `citations`; the specification's offsets have shorter names. */
function specCitations(metadata: JsonObject): JsonObject {
  const sources = listOf(metadata['citationSources'] ?? metadata['citations']);
  return {
    citation_sources: sources.map((source) => {
      const { startIndex, endIndex, ...others } = objectOf(source) ?? {};
      return {
        ...(startIndex === undefined ? {} : { start: startIndex }),
        ...(endIndex === undefined ? {} : { end: endIndex }),
        ...(rename(others, toSnake) as JsonObject),
      };
    }),
  };
}
