/** The types of checks that ask a service outside. */
import { azureContentSafety } from './azure-content-safety.ts';
import { bedrockGuardrail } from './bedrock-guardrail.ts';
import { lakera } from './lakera.ts';
import { litellm } from './litellm.ts';
import { modelArmor } from './model-armor.ts';
import { openaiModerations } from './openai-moderations.ts';
import { presidio } from './presidio.ts';
import { prismaAirs } from './prisma-airs.ts';

export const services = [
  azureContentSafety,
  bedrockGuardrail,
  lakera,
  litellm,
  modelArmor,
  openaiModerations,
  presidio,
  prismaAirs,
];
