/** `model-gateway`: the contract between a plugin and the gateway. Begin with `definePlugin`. */

export {
  defineContextKey,
  defineExtensionPoint,
  definePlugin,
  defineService,
  type Endpoint,
  type Exchange,
  type Host,
  type Next,
  type Outcome,
  type PluginInstance,
  upstreamRequest,
} from '../../../core/contract/contract.ts';
export { GatewayError } from '../../../core/contract/errors.ts';
export type { Answer } from '../../../core/contract/message.ts';
export { duration, size, z } from '../../../core/contract/schema.ts';
export { type SecretSource, secretSources } from '../../../core/contract/secret.ts';
export { UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
export { Unfetchable } from '../../../core/tools/guarded-fetch.ts';
