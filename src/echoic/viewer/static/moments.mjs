// Moments as people read them: one clock for all pages, that of who looks, with 24 hours.

const two = (number) => String(number).padStart(2, '0');

/** 19:18:30 */
export function clock(seconds) {
  const moment = new Date(seconds * 1000);
  return Number.isNaN(moment.getTime()) ? '' : [moment.getHours(), moment.getMinutes(), moment.getSeconds()].map(two).join(':');
}

/** The same; a moment of another day has its date before it. */
export function dated(seconds) {
  const moment = new Date(seconds * 1000);
  if (Number.isNaN(moment.getTime())) return '';
  const day = [moment.getFullYear(), two(moment.getMonth() + 1), two(moment.getDate())].join('-');
  return moment.toDateString() === new Date().toDateString() ? clock(seconds) : `${day} ${clock(seconds)}`;
}
