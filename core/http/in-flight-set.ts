/** A set of running things to iterate: an array with constant-time removal. Pure. */

/** `inFlightIndex` belongs to the set. A member is in one set at a time. */
export interface InFlightMember {
  inFlightIndex: number;
}

/**
 * Used instead of a Set. A long-lived Set keeps deleted members reachable from its discarded tables, so that they reach the
 * old generation: that took a third of the time of forwarding in garbage collection.
 */
export class InFlightSet<Member extends InFlightMember> {
  readonly #members: Member[] = [];

  get size(): number {
    return this.#members.length;
  }

  add(member: Member): void {
    member.inFlightIndex = this.#members.length;
    this.#members.push(member);
  }

  /** Moves the last member into the deleted one's index. */
  delete(member: Member): void {
    const last = this.#members.pop();
    if (last === undefined || last === member) return;
    this.#members[member.inFlightIndex] = last;
    last.inFlightIndex = member.inFlightIndex;
  }

  /** Iterates from the end, so that `visit` may delete members. */
  forEach(visit: (member: Member) => void): void {
    for (let index = this.#members.length - 1; index >= 0; index--) {
      const member = this.#members[index];
      if (member !== undefined) visit(member);
    }
  }
}
