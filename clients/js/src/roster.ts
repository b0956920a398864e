/**
 * Who is present in a channel, as far as the server tells.
 *
 * The server names at most some hundred members and the true total, then tells joins, leaves and
 * updates. A delta that makes no sense is refused whole by the frame's reader; here an update older
 * than what is known is dropped, so that all members end with the same value. The roster of before
 * stays while the connection is away: nobody has left because we are not connected.
 */

import type { Member, PresenceKind } from "./frames.js";

/** Members kept by name; further ones are only counted. */
export const MEMBERS_MAX = 4_096;

/** What a presence frame carries. */
export interface PresenceDelta {
  readonly kind: PresenceKind;
  readonly members: readonly Member[];
  readonly total?: number;
}

/** The members known by name, and how many there are in all. */
export class Roster {
  #members = new Map<string, Member>();
  #total = 0;

  /** By member id, in the order they became known. */
  get members(): ReadonlyMap<string, Member> {
    return this.#members;
  }

  /** All who are present, named or not. */
  get total(): number {
    return this.#total;
  }

  /** Takes a frame and returns the members it really changed; undefined if it is refused whole. */
  apply(delta: PresenceDelta): Member[] | undefined {
    if (delta.members.length > MEMBERS_MAX) return undefined;
    if (delta.kind === "sync") return this.#replace(delta);
    const effective = delta.members.filter((member) => this.#applyOne(delta.kind, member));
    this.#total = Math.max(delta.total ?? this.#total, this.#members.size);
    return effective;
  }

  #replace({ members, total }: PresenceDelta): Member[] {
    this.#members = new Map(members.map((member) => [member.id, member]));
    this.#total = Math.max(total ?? 0, this.#members.size);
    return [...this.#members.values()];
  }

  #applyOne(kind: PresenceKind, member: Member): boolean {
    const known = this.#members.get(member.id);
    if (kind === "leave") return this.#leave(member, known);
    if (known !== undefined) {
      if (member.at <= known.at) return false;
      this.#members.set(member.id, member);
      return true;
    }
    // An update of somebody unnamed: present before, counted already.
    if (kind === "join") this.#total += 1;
    if (this.#members.size < MEMBERS_MAX) this.#members.set(member.id, member);
    return true;
  }

  #leave(member: Member, known: Member | undefined): boolean {
    const isUnnamed = known === undefined && this.#total > this.#members.size;
    if (known === undefined && !isUnnamed) return false;
    if (known !== undefined && member.at < known.at) return false;
    this.#members.delete(member.id);
    this.#total -= 1;
    return true;
  }
}
