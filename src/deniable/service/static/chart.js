// Bars with intervals, drawn by Vega-Lite; the look is that of deniable's charts in Python.
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

const STEP = 24;
const AROUND = 50;
export const heightOf = (count) => STEP * count + AROUND;

function palette() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return { bar: of('--bar'), ink: of('--ink'), faint: of('--line'), soft: of('--soft') };
}

function layers({ bar, ink }, width) {
  const axis = { format: '~%', tickCount: Math.ceil(width / 110) };
  const share = { type: 'quantitative', title: 'share of respondents', axis };
  const cap = (end) => ({
    mark: { type: 'tick', color: ink, height: 8, thickness: 1.5 },
    encoding: { x: { ...share, field: end } },
  });
  return [
    { mark: { type: 'bar', color: bar, height: 14 }, encoding: { x: { ...share, field: 'frequency' } } },
    {
      mark: { type: 'rule', color: ink, strokeWidth: 1.5 },
      encoding: { x: { ...share, field: 'low' }, x2: { field: 'high' } },
    },
    cap('low'),
    cap('high'),
  ];
}

function specOf(rows, width, words) {
  const colours = palette();
  const percent = (field, title) => ({ field, title, type: 'quantitative', format: '.2%' });
  const labels = { labelColor: colours.ink, titleColor: colours.soft, gridColor: colours.faint };
  return {
    description: words,
    // Vega keeps categories as keys of objects: an answer such as __proto__ cannot be one.
    params: [{ name: 'names', value: rows.map(({ value }) => value) }],
    data: { values: rows.map((row, place) => ({ ...row, place })) },
    width,
    height: STEP * rows.length,
    autosize: { type: 'fit-x', contains: 'padding' },
    encoding: {
      y: {
        field: 'place', type: 'ordinal', title: null,
        axis: { labelExpr: 'names[datum.value]', labelLimit: width * 0.4, labelFontSize: 12 },
      },
      description: { field: 'value' },
      tooltip: [
        { field: 'value', title: 'answer' },
        percent('frequency', 'share'), percent('low', 'from'), percent('high', 'to'),
      ],
    },
    layer: layers(colours, width),
    config: {
      background: null,
      font: 'system-ui, sans-serif',
      view: { stroke: colours.faint },
      axis: { ...labels, domainColor: colours.faint, tickColor: colours.faint, titleFontWeight: 'normal' },
    },
  };
}

// Expressions are interpreted, not compiled: the page's headers forbid `eval`.
const OPTIONS = {
  ast: true, actions: false, renderer: 'svg', defaultStyle: false,
  tooltip: { disableDefaultStyle: true },
};

/** Draw beside what is shown, then put it in its place: nothing flickers. */
export async function draw(place, rows, words) {
  const embed = await library();
  const fresh = el('div');
  await embed(fresh, specOf(rows, place.clientWidth, words), OPTIONS);
  place.replaceChildren(fresh);
}
