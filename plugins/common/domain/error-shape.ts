/** The service by which a gateway's own error format reaches plugins that write errors into running streams. */

import { defineService } from '../../../core/contract/contract.ts';
import type { GatewayError } from '../../../core/contract/errors.ts';

/** The members of the gateway's own error bodies; plugins that send errors inside streams add them too. */
export interface ErrorShape {
  /** `requestId` is the gateway's own id of the request. */
  members(error: GatewayError, requestId: string): ShapeMembers;
}

export type ShapeMembers = Readonly<Record<string, string>>;

export const errorShape = defineService<ErrorShape>('error shape');
