/** `model-gateway`: the contract between a plugin and the gateway. Begin with `definePlugin`. */

export type { Command } from '../../../core/contract/commands.ts';
export {
  type Clock,
  type ContextKey,
  defineContextKey,
  defineExtensionPoint,
  definePlugin,
  defineService,
  type Endpoint,
  type Exchange,
  type ExtensionPoint,
  type FetchOptions,
  type Host,
  type Log,
  type Next,
  type Outcome,
  type Plugin,
  type PluginInstance,
  type Service,
  type UpstreamRequest,
  upstreamRequest,
} from '../../../core/contract/contract.ts';
export { GatewayError } from '../../../core/contract/errors.ts';
export type { Answer, ClientRequest, Headers } from '../../../core/contract/message.ts';
export type { Fault, Notice } from '../../../core/contract/remarks.ts';
export { duration, size, z } from '../../../core/contract/schema.ts';
export { type Secret, type SecretSource, secretSources } from '../../../core/contract/secret.ts';
export { UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
export { Unfetchable } from '../../../core/tools/guarded-fetch.ts';
