// A component that is made anew only when one of its properties changed: most rows stay from call to call.
import { Component, type ComponentType } from "preact";

export function kept<P extends object>(View: ComponentType<P>): ComponentType<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      return (Object.keys(next) as (keyof P)[]).some((key) => this.props[key] !== next[key]);
    }

    override render(props: P) {
      return <View {...props} />;
    }
  };
}
