/** Parameters that a vendor's protocol lacks: refused by the client's name for them, or reported as dropped. Pure. */
import { GatewayError } from '../../../core/contract/errors.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import { refuseUnmetered } from '../wire/named.ts';
import type { Order } from './adapters.ts';

/** Clients of every protocol get this code; the message says what is supported instead. */
const unsupportedCode = 'unsupported_by_model';

/** A 400 that names the client's field. */
export function unsupported(message: string, field: string): GatewayError {
  return new GatewayError('invalid_request', message, { field, code: unsupportedCode });
}

/** The client's name for a member of its order. */
export function fieldOf(order: Order, member: keyof Order): string {
  return order.fields?.[member] ?? member;
}

/** Required parameters: without them the result would be a different one. */
const requiredParameters = ['mask', 'image', 'images', 'draft'];

/**
 * The client's further members that the vendor accepts, and the names of the dropped ones. Throws for a required
 * parameter among these.
 */
export function pickExtras(
  order: Order,
  supported: ReadonlySet<string>,
): { readonly extras: JsonObject; readonly dropped: readonly string[] } {
  const extras: Record<string, unknown> = {};
  const dropped: string[] = [];
  for (const [name, value] of Object.entries(order.extra)) {
    if (supported.has(name)) {
      refuseUnmetered('images', { [name]: value }, { has: (model) => model === order.model });
      extras[name] = value;
    } else if (requiredParameters.includes(name) && value !== false)
      throw unsupported(`The model does not take "${name}".`, name);
    else dropped.push(name);
  }
  return { extras, dropped };
}

/** Refuses references of roles that the vendor does not support. */
export function refuseRoles(order: Order, supported: ReadonlySet<string>): void {
  for (const { role, field } of order.references) {
    if (!supported.has(role)) throw unsupported(`The model does not take a reference of this kind (${role}).`, field);
  }
}

/** The client's names of those of these members that the order has and the vendor does not support. */
export function droppedMembers(order: Order, ...members: readonly (keyof Order)[]): string[] {
  return members.filter((member) => order[member] !== undefined).map((member) => fieldOf(order, member));
}
