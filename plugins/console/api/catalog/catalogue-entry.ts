/** What all roles see of a model in the catalogue. */

import { z } from '@hono/zod-openapi';
import type { PricedModel } from '../../../common/domain/admin/prices.ts';
import { type Model, modelKinds } from '../../../common/domain/models.ts';

export const catalogueEntry = z.object({
  id: z.string(),
  ownedBy: z.string(),
  displayName: z.string(),
  kind: z.enum(modelKinds),
  contextTokens: z.number().nullable(),
  maxOutputTokens: z.number().nullable(),
  modalities: z.array(z.string()),
  limits: z
    .object({
      prompt: z.number().describe('Characters.'),
      images: z.number(),
      references: z.number(),
      seconds: z.number(),
      size: z.string(),
      resolutions: z.array(z.string()),
      qualities: z.array(z.string()),
      voices: z.array(z.string()),
      formats: z.array(z.string()),
      needsImage: z.boolean().describe('It makes nothing without an image.'),
    })
    .partial()
    .describe('What the vendor documents of a model beside its tokens.'),
});

export function entryJson(
  { id, ownedBy, displayName, kind, contextTokens, maxOutputTokens, limits = {} }: Model | PricedModel,
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
    limits,
  };
}
