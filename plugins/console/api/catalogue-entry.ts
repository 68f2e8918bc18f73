/** What all roles see of a model in the catalogue. */

import { z } from '@hono/zod-openapi';
import type { PricedModel } from '../../common/domain/admin/prices.ts';
import { type Model, modelKinds } from '../../common/domain/models.ts';

export const catalogueEntry = z.object({
  id: z.string(),
  ownedBy: z.string(),
  displayName: z.string(),
  kind: z.enum(modelKinds),
  contextTokens: z.number().nullable(),
  maxOutputTokens: z.number().nullable(),
  modalities: z.array(z.string()),
});

export function entryJson(
  { id, ownedBy, displayName, kind, contextTokens, maxOutputTokens }: Model | PricedModel,
  modalities: readonly string[],
): z.infer<typeof catalogueEntry> {
  return {
    id,
    ownedBy,
    displayName,
    kind,
    contextTokens: contextTokens ?? null,
    maxOutputTokens: maxOutputTokens ?? null,
    modalities: [...modalities],
  };
}
