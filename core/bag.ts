/** What is under way right now, to be looked through: an array from which members are taken out in constant time. Pure. */

/** Extend or implement; `bagIndex` is the bag's own. A member is in one bag at a time. */
export interface BagMember {
  bagIndex: number;
}

/**
 * Stands where a Set would. A Set that lives long and sees every request come and go keeps dead members reachable from its
 * discarded tables, so that they survive into the old generation: a third of the forwarding cost was garbage collection.
 */
export class Bag<Member extends BagMember> {
  readonly #members: Member[] = [];

  get size(): number {
    return this.#members.length;
  }

  add(member: Member): void {
    member.bagIndex = this.#members.length;
    this.#members.push(member);
  }

  /** The last member takes the place of the one that goes. */
  delete(member: Member): void {
    const last = this.#members.pop();
    if (last === undefined || last === member) return;
    this.#members[member.bagIndex] = last;
    last.bagIndex = member.bagIndex;
  }

  /** Members may be deleted while they are looked through: the walk goes from the end. */
  forEach(visit: (member: Member) => void): void {
    for (let index = this.#members.length - 1; index >= 0; index--) {
      const member = this.#members[index];
      if (member !== undefined) visit(member);
    }
  }
}
