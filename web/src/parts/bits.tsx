// The small pieces that stand everywhere: a quiet sentence, buttons by how much they weigh, what pushes the rest aside.
import type { ComponentChildren, JSX } from "preact";

type Button = JSX.IntrinsicElements["button"];

export const Mute = ({ children }: { children?: ComponentChildren }) => <p class="mute">{children}</p>;
export const Link = (given: Button) => <button class="link" {...given} />;
export const Act = (given: Button) => <button class="act" {...given} />;
export const Tool = (given: Button) => <button class="tool" {...given} />;
export const Grow = () => <span class="grow" />;

/** Instead of what is not there: that it is not, and what to do. */
export const Empty = ({ title, children }: { title: ComponentChildren; children?: ComponentChildren }) => <div class="empty"><b>{title}</b><span>{children}</span></div>;

/** A form that does something when it is sent, instead of loading a page. */
export const Form = ({ does, ...given }: JSX.IntrinsicElements["form"] & { does: () => void }) => (
  <form {...given} onSubmit={(event) => { event.preventDefault(); does(); }} />
);
