// Draws the charts that the server describes (Vega-Lite), in the colours of the page.
import { el } from '/page.js';

let loading;

/** The library comes when the first chart does: the numbers are there before. */
function library() {
  loading ??= new Promise((resolve, reject) => {
    const script = el('script', { src: '/vega.js' });
    script.onload = () => resolve(window.vegaEmbed);
    script.onerror = () => reject(Error('The charts could not be loaded.'));
    document.head.append(script);
  });
  return loading;
}

/** What depends on light and dark; the styles are those of `deniable.views.charts`. */
function theme(width) {
  const page = getComputedStyle(document.documentElement);
  const of = (name) => page.getPropertyValue(name).trim();
  const [bar, point, ink, soft, line, truth] =
    ['--bar', '--main', '--ink', '--soft', '--line', '--wrong'].map(of);
  return {
    background: null,
    font: 'system-ui, sans-serif',
    view: { stroke: line },
    axis: {
      labelColor: ink, titleColor: soft, titleFontWeight: 'normal',
      gridColor: line, domainColor: line, tickColor: line,
    },
    axisX: { labelOverlap: 'greedy', labelSeparation: 6 },
    axisY: { labelLimit: width * 0.4, labelFontSize: 12 },
    legend: { labelColor: ink, titleColor: soft },
    style: {
      estimate: { color: bar }, point: { color: point }, interval: { color: ink },
      truth: { color: truth }, quiet: { color: soft },
    },
  };
}

/** The page has places of its own for the title; a single plot is as wide as its place. */
function fitted(spec, width) {
  const { title, ...body } = { ...spec, config: theme(width) };
  return 'width' in spec ? { ...body, width, autosize: { type: 'fit-x', contains: 'padding' } } : body;
}

// Expressions are interpreted, not compiled: the page's headers forbid `eval`.
const OPTIONS = {
  ast: true, actions: false, renderer: 'svg', defaultStyle: false,
  tooltip: { disableDefaultStyle: true },
};

/** Draw beside what is shown, then put it in its place: nothing flickers. */
export async function draw(place, spec) {
  const embed = await library();
  const fresh = el('div');
  await embed(fresh, fitted(spec, place.clientWidth), OPTIONS);
  place.replaceChildren(fresh);
}
